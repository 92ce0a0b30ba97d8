"""The import rules bite: for each contract a house built to break it, and the contract names the beam.

A skeleton of the packages is written to a folder of its own and judged by the real contracts. Nothing of it is run.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CONFIGURATION = REPOSITORY / "pyproject.toml"

# What a well-kept house may do: the imports that the contracts make room for.
ALLOWED = {
    "simulation.world": "import node.compose, random, time",
    "simulation.cluster.worker": "import tidewheel.worker",
    "simulation.checkers.fold": "import node.audit, schemas.words, runtime.record, simulation.evidence",
    "simulation.evidence": "import simulation.history, schemas.words, runtime.record",
    "simulation.history": "",
    "node.compose": "import api.app, scheduler.core, runtime.host, tidewheel.worker, os",
    "node.audit": "import schemas.words, runtime.logs.kafka",
    "api.app": "import fastapi, asyncio, projections.store, runtime.log",
    "scheduler.core": "import datetime, schemas.words, runtime.machine, runtime.record",
    "dispatcher.core": "import hashlib, schemas.words, runtime.machine, runtime.record",
    "projections.core": "import schemas.words, runtime.machine, runtime.record",
    "projections.store": "import sqlalchemy",
    "runtime.continuity": "",
    "runtime.footer": "",
    "runtime.host": "import asyncio, rocksdict, schemas.words",
    "runtime.log": "",
    "runtime.machine": "import schemas.words",
    "runtime.processor": "",
    "runtime.record": "",
    "runtime.restore": "",
    "runtime.workspace": "",
    "runtime.logs.kafka": "import confluent_kafka, runtime.log",
    "schemas.codec": "",
    "schemas.words": "import pydantic",
    "tidewheel.worker": "import httpx, asyncio",
}

LAYERS = "Layers: simulation, node, api, cores (strangers to each other), runtime, schemas"
SDK_ALONE = "The SDK stands alone: it imports nothing of the server"
ONLY_NODE_KNOWS_SDK = "Of the server only node imports the SDK"
CORES_SEE = "Of the runtime a core sees machine and record, no more"
PURE = "A deciding core is pure: no clock, chance, network, disk or vendor library"
SQL = "SQL is spoken only in projections.store"
ROCKSDB = "RocksDB is known only to the runtime"
KAFKA = "Kafka's client is known only to runtime.logs.kafka"
AUDIT = "The audit counts with an arithmetic of its own"
CHECKERS = "The simulation's checkers share nothing with what they judge"

# (contract, module that breaks it, what it imports). One module may hold several, as each is reported by itself.
VIOLATIONS = [
    (LAYERS, "node.upward", "simulation.world"),
    (LAYERS, "api.upward", "node.compose"),
    (LAYERS, "scheduler.sideways", "dispatcher.core"),
    (LAYERS, "dispatcher.sideways", "projections.core"),
    (LAYERS, "projections.upward", "api.app"),
    (LAYERS, "runtime.upward", "scheduler.core"),
    (LAYERS, "schemas.upward", "runtime.record"),
    (SDK_ALONE, "tidewheel.borrower", "schemas.words"),
    (SDK_ALONE, "tidewheel.borrower", "node.compose"),
    (ONLY_NODE_KNOWS_SDK, "api.guest", "tidewheel.worker"),
    (ONLY_NODE_KNOWS_SDK, "schemas.guest", "tidewheel.worker"),
    (CORES_SEE, "scheduler.peeping", "runtime.log"),
    (CORES_SEE, "dispatcher.peeping", "runtime.host"),
    (CORES_SEE, "projections.peeping", "runtime.logs.kafka"),
    (PURE, "scheduler.impure", "time"),
    (PURE, "scheduler.impure", "asyncio"),
    (PURE, "scheduler.impure", "os"),
    (PURE, "dispatcher.impure", "random"),
    (PURE, "dispatcher.impure", "uuid"),
    (PURE, "dispatcher.impure", "socket"),
    (PURE, "dispatcher.impure", "httpx"),
    (SQL, "projections.fold", "sqlalchemy"),
    (SQL, "api.query", "sqlalchemy"),
    (ROCKSDB, "node.stores", "rocksdict"),
    (ROCKSDB, "scheduler.impure", "rocksdict"),
    (KAFKA, "runtime.logs.embedded", "confluent_kafka"),
    (KAFKA, "node.topics", "confluent_kafka"),
    (AUDIT, "node.audit", "scheduler.core"),
    (AUDIT, "node.audit", "projections.core"),
    (CHECKERS, "simulation.checkers.borrower", "dispatcher.core"),
    (CHECKERS, "simulation.checkers.borrower", "runtime.restore"),
    (CHECKERS, "simulation.evidence", "scheduler.core"),
]


def test_a_house_in_order_keeps_every_contract(tmp_path):
    report = judge(build(tmp_path, ALLOWED))
    assert {name: verdict for name, (verdict, _) in report.items()} == dict.fromkeys(contracts(), "KEPT")


@pytest.fixture(scope="module")
def broken_house(tmp_path_factory):
    modules = dict(ALLOWED)
    for _, module, imported in VIOLATIONS:
        modules[module] = modules.get(module, "") + f"\nimport {imported}"
    return judge(build(tmp_path_factory.mktemp("house"), modules))


@pytest.mark.parametrize(("contract", "module", "imported"), VIOLATIONS)
def test_an_import_against_the_rules_breaks_its_contract_and_is_named(broken_house, contract, module, imported):
    verdict, reasons = broken_house[contract]
    assert verdict == "BROKEN"
    assert f"{module} -> {imported} (l." in reasons


def test_every_contract_has_a_violation_that_shows_it_bites():
    assert {contract for contract, _, _ in VIOLATIONS} == set(contracts())


def contracts() -> list[str]:
    configuration = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))
    return [contract["name"] for contract in configuration["tool"]["importlinter"]["contracts"]]


def build(house: Path, modules: dict[str, str]) -> Path:
    """Write the modules and the packages above them."""
    for module, imports in modules.items():
        path = house.joinpath(*module.split("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(imports + "\n", encoding="utf-8")
    for folder in (folder for folder in house.rglob("*") if folder.is_dir()):
        (folder / "__init__.py").touch()
    return house


def judge(house: Path) -> dict[str, tuple[str, str]]:
    """The verdict of the real contracts on a house, each with the imports it objects to."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache", str(CONFIGURATION)]
    # COLUMNS: a name that is wrapped would not be found again.
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(house), "COLUMNS": "400"}
    done = subprocess.run(command, cwd=house, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    verdicts, _, reasons = done.stdout.partition("Broken contracts\n")
    return {
        name: (verdict, _section(reasons, name))
        for name, verdict in re.findall(r"^(.+?) ?(KEPT|BROKEN)(?: \(.*\))?$", verdicts, flags=re.MULTILINE)
    }


def _section(reasons: str, name: str) -> str:
    """What stands between this contract's heading and the next one."""
    _, _, rest = reasons.partition(f"\n{name}\n")
    return re.split(r"\n[^\n]+\n-{10,}\n", re.sub(r"^-+\n", "", rest))[0]
