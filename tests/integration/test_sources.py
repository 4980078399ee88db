"""The local target's bases, from this machine's real Debian mirror and package index, and used in a chroot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from websockets.sync.client import connect

from pipeline.embedded.apt import Apt
from pipeline.embedded.aptsources import load_mirror
from pipeline.embedded.debianroot import fetch_root
from pipeline.embedded.layercache import SourceLayer
from pipeline.embedded.taskimage import Sources, TaskImage, make_task_image, make_wheel_layer
from pipeline.layout import Layout
from pipeline.model.release import Debian, ImageDefinition, TaskDefinition

ROOT = Path(__file__).parents[2]
MIMO = ROOT / "images/mimo"
EPOCH_S = 1_760_227_200
PYROMAT, MRI_NUFFT = "format-code-task-000666", "format-code-task-001926"
PORT = 5791
SERVER = """
import sys
sys.path[:0] = ["/opt/arena/runtime", "/opt/arena"]
import absent
absent.install()
from openenv.core.env_server import Action, Environment, Observation, State, create_app
import uvicorn

class Command(Action):
    operation: str

class Seen(Observation):
    output: str = ""

class Echo(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    def reset(self, **options): return Seen(output="ready", reward=0.0, done=False)
    def step(self, action, **options): return Seen(output=action.operation, reward=1.0, done=True)
    @property
    def state(self): return State()

uvicorn.run(create_app(Echo, Command, Seen, env_name="echo", max_concurrent_envs=1), host="127.0.0.1", port=PORT)
"""


def definition() -> ImageDefinition:
    return ImageDefinition.model_validate_json(json.dumps(yaml.safe_load((MIMO / "image.yaml").read_text())))


def task(name: str, folder: Path) -> tuple[TaskDefinition, Path]:
    """The real task beside a record of the least that a task image needs."""
    copy = folder / name
    shutil.copytree(MIMO / "tasks" / name, copy)
    (copy / "record.json").write_text('{"cwd": "/workspace/repo"}')
    return TaskDefinition.model_validate_json(json.dumps(yaml.safe_load((copy / "task.yaml").read_text()))), copy


@dataclass(frozen=True)
class Unpacked:
    """A task image with the runtime layer on it, unpacked as a root file system."""

    image: TaskImage
    runtime: SourceLayer
    root: Path

    def run(self, *command: str, agent: bool = True, check: bool = True) -> subprocess.CompletedProcess[str]:
        user = ["--userspec=2000:2000"] if agent else []
        shell = ["/usr/sbin/chroot", *user, str(self.root), "/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin"]
        full = [*shell, "HOME=/home/arena-agent", "LC_ALL=C.UTF-8", *command]
        return subprocess.run(full, capture_output=True, text=True, timeout=120, check=check)

    def bash(self, script: str) -> str:
        return self.run("/bin/bash", "-euc", f"cd /workspace/repo\n{script}").stdout


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


def build(name: str, cache: Path, folder: Path) -> Unpacked:
    layout = Layout(folder / "layout")
    recipe, task_path = task(name, folder)
    sources = Sources(cache)
    image = make_task_image(definition(), recipe, task_path, sources, layout, EPOCH_S)
    debian = definition().debian
    assert debian is not None
    runtime = make_wheel_layer(MIMO / "runtime.lock", "/opt/arena/runtime", debian, sources, layout, EPOCH_S)
    root = folder / "root"
    root.mkdir(mode=0o755)
    for digest in (*(layer.digest for layer in image.manifest.view.layers), runtime.digest):
        unpack = ["tar", "--numeric-owner", "-xpzf", str(layout.path(digest)), "-C", str(root)]
        subprocess.run(unpack, check=True)
    for device, minor in (("null", 3), ("urandom", 9)):
        os.mknod(root / "dev" / device, 0o020666, os.makedev(1, minor))
        (root / "dev" / device).chmod(0o666)
    return Unpacked(image, runtime, root)


@pytest.fixture(scope="session")
def pyromat(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    return build(PYROMAT, cache, tmp_path_factory.mktemp("pyromat"))


@pytest.fixture(scope="session")
def mri_nufft(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    return build(MRI_NUFFT, cache, tmp_path_factory.mktemp("mri-nufft"))


def test_sizes(pyromat: Unpacked) -> None:
    debian, packages, repository = (layer.size for layer in pyromat.image.manifest.view.layers)
    assert debian < 33_000_000
    assert pyromat.runtime.size < 25_000_000
    assert packages < 25_000_000
    assert repository < 10_000_000


def test_everything_compiles_and_is_recorded(pyromat: Unpacked) -> None:
    assert (pyromat.image.notes, pyromat.runtime.notes) == ((), ())
    kinds = {material.kind for material in pyromat.image.materials}
    assert kinds == {"debian-package", "wheel", "sdist", "git-commit"}
    assert all(material.digests and material.uri.startswith(("pkg:", "git+")) for material in pyromat.image.materials)


def test_the_installed_packages_are_those_of_the_materials(pyromat: Unpacked) -> None:
    status = (pyromat.root / "var/lib/dpkg/status").read_text()
    listed = {line.removeprefix("Package: ") for line in status.splitlines() if line.startswith("Package: ")}
    assert listed == {item.name for item in pyromat.image.materials if item.kind == "debian-package"}
    assert not listed & {"perl", "perl-base", "dpkg", "libcurl3-gnutls"}


def test_every_program_and_library_finds_its_libraries(pyromat: Unpacked) -> None:
    script = """cd /usr/lib; for f in ../bin/* git-core/* x86_64-linux-gnu/*.so* python3*/lib-dynload/*; do
        [ -f "$f" ] && /lib64/ld-linux-x86-64.so.2 --list "$f" 2>/dev/null | grep -H --label="$f" "not found" || true
    done"""
    assert pyromat.bash(script) == ""


def test_every_extension_module_of_python_loads(pyromat: Unpacked) -> None:
    program = """import glob, importlib, warnings
warnings.simplefilter('ignore')
names = sorted(p.split('/')[-1].split('.')[0] for p in glob.glob('/usr/lib/python3.*/lib-dynload/*.so'))
for name in names: importlib.import_module(name)
print(len(names))"""
    assert int(pyromat.run("python3", "-c", program).stdout) > 20


def test_bytecode_is_there_and_taken(pyromat: Unpacked) -> None:
    program = """import importlib.util, json, sys
sys.path.insert(0, '/opt/arena/runtime')
import numpy, fastapi, pydantic
for module in (json, numpy, fastapi, pydantic):
    cached = open(module.__spec__.cached, 'rb').read(8)
    assert cached[:4] == importlib.util.MAGIC_NUMBER and cached[4:] == b'\\1\\0\\0\\0', module"""
    pyromat.run("python3", "-c", program, agent=False)
    library = pyromat.root / "usr/lib/python3.11"
    sources = [path for path in library.rglob("*.py") if not path.is_symlink()]
    missing = [path for path in sources if not (path.parent / f"__pycache__/{path.stem}.cpython-311.pyc").is_file()]
    assert len(sources) > 300
    assert not missing


def test_git_works_for_the_agent(pyromat: Unpacked) -> None:
    script = """git status --porcelain
git -c user.name=a -c user.email=a@b.c stash list
echo change >> README.md; git diff --stat | tail -1
git -c user.name=a -c user.email=a@b.c commit -qam change; git reset -q --hard HEAD~1
echo x > new; git add new; git stash -q 2>/dev/null || git reset -q --hard
git submodule status; git log --oneline | wc -l; git rev-parse HEAD"""
    lines = pyromat.bash(script).splitlines()
    assert lines[-1] == pyromat.image.base_commit
    assert lines[0].startswith(" 1 file changed")


def test_the_agent_has_its_home_and_no_way_to_the_runtime(pyromat: Unpacked) -> None:
    assert pyromat.bash("id -u; id -gn; touch ~/mine /tmp/mine /var/tmp/mine; echo ok") == "2000\narena-agent\nok\n"
    assert pyromat.run("ls", "/opt/arena", check=False).returncode != 0
    assert (pyromat.root / "opt/arena").stat().st_mode & 0o777 == 0o700


def test_pyromat_imports_and_lacks_only_the_lookup(pyromat: Unpacked) -> None:
    program = """import pyromat as pm
print(hasattr(pm, 'get'), len(pm.search(name='Ar')) > 0, pm.dat.data['ig.Ar'].h(T=325, p=1.013)[0] > 13)"""
    assert pyromat.bash(f'PYTHONPATH=src python3 -c "{program}"') == "False True True\n"
    assert pyromat.bash("pytest --version").startswith("pytest ")


def test_mri_nufft_imports_and_lacks_only_the_density(mri_nufft: Unpacked) -> None:
    program = """import numpy, mrinufft.density as d
print(hasattr(d, 'cell_count'), d.voronoi(numpy.random.default_rng(0).uniform(-.5, .5, (200, 2))).shape)"""
    assert mri_nufft.bash(f'PYTHONPATH=src python3 -W ignore -c "{program}"') == "False (200,)\n"
    assert mri_nufft.bash("git status --porcelain") == ""
    assert mri_nufft.bash("git rev-parse HEAD").strip() == mri_nufft.image.base_commit


def test_the_packages_of_a_task_import_without_their_test_suites(mri_nufft: Unpacked) -> None:
    modules = "numpy.testing, scipy.stats, scipy.spatial, scipy.signal, scipy.sparse.linalg, scipy.interpolate"
    mri_nufft.run(
        "python3", "-c", f"import {modules}, scipy.optimize, matplotlib.pyplot, PIL.Image, fontTools.ttLib, tqdm"
    )


def test_root_and_runtime_are_one_layer_in_all_images(pyromat: Unpacked, mri_nufft: Unpacked) -> None:
    assert pyromat.runtime.digest == mri_nufft.runtime.digest
    assert pyromat.image.manifest.view.layers[0] == mri_nufft.image.manifest.view.layers[0]


def test_another_folder_umask_zone_and_locale_give_the_same_digests(
    pyromat: Unpacked, cache: Path, tmp_path: Path
) -> None:
    shutil.copytree(cache / "files", tmp_path / "cache/files")
    shutil.copytree(cache / "debian", tmp_path / "cache/debian")
    program = f"""import sys
sys.path[:0] = {[str(ROOT), str(ROOT / "tests/integration")]!r}
from pathlib import Path
import test_sources as t
folder = Path({str(tmp_path)!r})
layout = t.Layout(folder / "layout")
recipe, task_path = t.task(t.PYROMAT, folder)
debian = t.definition().debian
sources = t.Sources(folder / "cache", "http://127.0.0.1:9/never-asked")
image = t.make_task_image(t.definition(), recipe, task_path, sources, layout, t.EPOCH_S)
wheels = t.make_wheel_layer(t.MIMO / "runtime.lock", "/opt/arena/runtime", debian, sources, layout, t.EPOCH_S)
print(image.manifest.digest, wheels.digest)"""
    environment = {
        "PATH": os.environ["PATH"],
        "TZ": "Asia/Kathmandu",
        "LC_ALL": "C",
        "HOME": "/nowhere",
        "PYTHONHASHSEED": "99",
    }
    environment |= {"PIP_INDEX_URL": "http://127.0.0.1:9/never-asked", "USER": "other"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd="/",
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [pyromat.image.manifest.digest, pyromat.runtime.digest], done.stderr[-2000:]


@pytest.fixture
def server(pyromat: Unpacked) -> Iterator[str]:
    """A server of the framework from the runtime layer alone."""
    shutil.copy(MIMO / "arena/absent.py", pyromat.root / "opt/arena/absent.py")
    (pyromat.root / "opt/arena/echo.py").write_text(SERVER.replace("PORT", str(PORT)))
    command = ["/usr/sbin/chroot", str(pyromat.root), "/usr/bin/python3", "-I", "/opt/arena/echo.py"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(100):
            if process.poll() is not None:
                pytest.fail(process.stderr.read() if process.stderr else "ended")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"127.0.0.1:{PORT}"
    finally:
        process.terminate()
        process.wait(20)


def ask(url: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)


def test_the_runtime_serves_every_endpoint(server: str) -> None:
    assert ask(f"http://{server}/health")["status"] == "healthy"
    assert ask(f"http://{server}/metadata")["name"] == "Echo"
    assert set(ask(f"http://{server}/schema")) >= {"action", "observation"}
    assert "step_count" in ask(f"http://{server}/state")
    assert ask(f"http://{server}/reset", {})["observation"] == {"metadata": {}, "output": "ready"}
    assert ask(f"http://{server}/step", {"action": {"operation": "go"}})["reward"] == 1.0
    answer = ask(f"http://{server}/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    assert answer["error"]["code"] == -32603  # type: ignore[index]
    with connect(f"ws://{server}/ws") as socket:
        socket.send('{"type": "reset", "data": {}}')
        assert json.loads(socket.recv(20))["data"]["observation"]["output"] == "ready"
        socket.send('{"type": "step", "data": {"operation": "go"}}')
        assert json.loads(socket.recv(20))["data"]["done"] is True


def test_a_root_of_the_other_suite_has_its_own_python(cache: Path) -> None:
    names = definition().debian
    assert names is not None
    root = fetch_root(Debian(suite="trixie", packages=names.packages), None, cache)
    content = root.make_content()
    assert content.notes == ()
    paths = {entry.path for entry in content.entries}
    assert {"usr/bin/python3.13", "usr/lib/python3.13/__pycache__/os.cpython-313.pyc", "usr/bin/git"} <= paths
    command = root.python().command(["-c", "import json, sys; print(sys.version_info[:2])"])
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "(3, 13)\n"


def test_packages_are_resolved_below_a_folder_with_white_space(tmp_path: Path) -> None:
    apt = Apt(tmp_path / "a clone" / "cache of debs", "bookworm", load_mirror(None))
    apt.update()
    assert "base-files" in {deb.name for deb in apt.resolve(["base-files"])}
