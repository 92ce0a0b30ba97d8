"""Other systems' schedules as our definitions: pure functions from text to documents and remarks."""
