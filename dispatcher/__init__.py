"""WHO AND WHAT NEXT: runs and worker reports in; hand-outs, retries and outcomes out. Pure."""
