"""Reading released code: who dispatches calls there, what is said without a model, who writes the log; never run."""

import ast
import base64
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.agent_code import flow as source_flow
from service.domain.agent_code import scanner as agent_source
from service.domain.agent_code.code_scan import CodeScan, Dispatch, FindingKind
from service.domain.agent_code.scanner import scan
from tests.domain import agent_sources as sources

CODE, MODEL, LOG = FindingKind.CODE_DISPATCH, FindingKind.MODEL_DISPATCH, FindingKind.TOUCHES_LOG


def names(scanned: CodeScan, kind: FindingKind) -> set[str]:
    return {finding.name for finding in scanned.findings if finding.kind is kind}


def read(source: str) -> CodeScan:
    return scan(source.encode())


def touching(body: str, before: str = "") -> set[str]:
    """Names of the log that an agent with this code touches."""
    return names(read(f"import os, base64, codecs\n{before}\ndef agent_main(problem):\n    {body}\n"), LOG)


@pytest.mark.parametrize(
    ("source", "dispatch"),
    [
        ("REACT", Dispatch.MODEL),
        ("NATIVE", Dispatch.MODEL),
        ("TABLE", Dispatch.MODEL),
        ("BRANCHES", Dispatch.MODEL),
        ("BYPASSING", Dispatch.MODEL),
        ("PARALLEL", Dispatch.MODEL),
        ("EPISODE_BY_MODEL", Dispatch.MODEL),
        ("EPISODE_BY_CODE", Dispatch.CODE),
        ("EPISODE_OVER_A_SESSION", Dispatch.CODE),
        ("SUBMITTING", Dispatch.CODE),
        ("HYBRID", Dispatch.BOTH),
        ("REGEX", Dispatch.CODE),
        ("CLASSIFY", Dispatch.CODE),
        ("EXTRACT", Dispatch.CODE),
        ("ECHO", Dispatch.BOTH),
        ("FORGED_INLINE", Dispatch.CODE),
        ("FORGED_CAREFULLY", Dispatch.CODE),
    ],
)
def test_it_is_told_who_dispatches_calls(source: str, dispatch: Dispatch) -> None:
    scanned = read(getattr(sources, source))
    assert scanned.is_readable
    assert scanned.dispatch is dispatch
    asks = bool(names(scanned, FindingKind.MODEL_REQUEST))
    assert asks is (source not in ("REGEX", "FORGED_INLINE", "FORGED_CAREFULLY", "EPISODE_OVER_A_SESSION"))
    assert names(scanned, FindingKind.OBFUSCATED) == set()
    assert bool(names(scanned, LOG)) is source.startswith("FORGED")


def test_an_honest_agent_has_no_finding_but_its_requests_and_the_models_calls() -> None:
    for source in (
        getattr(sources, kind) for kind in ("REACT", "NATIVE", "TABLE", "BRANCHES", "BYPASSING", "PARALLEL")
    ):
        assert {one.kind for one in read(source).findings} == {MODEL, FindingKind.MODEL_REQUEST}


def test_findings_name_the_line_they_stand_on() -> None:
    scanned = read(sources.HYBRID)
    (think,) = (one for one in scanned.findings if one.kind is FindingKind.CONSTANT_THINK)
    (call,) = (one for one in scanned.findings if one.kind is CODE)
    lines = sources.HYBRID.splitlines()
    assert "The first one of each" in lines[think.line - 1]
    assert 'execute_tool_call("recommend_product"' in lines[call.line - 1]
    assert call.name == "recommend_product"


def test_a_call_that_code_puts_into_a_prompt_is_named() -> None:
    assert "echoed" in names(read(sources.ECHO), CODE)
    assert "echoed" not in names(read(sources.REACT), CODE)


def test_think_texts_of_code_are_found_where_they_stand() -> None:
    scanned = read(sources.FORGED_CAREFULLY)
    lines = sources.FORGED_CAREFULLY.splitlines()
    found = [lines[one.line - 1] for one in scanned.findings if one.kind is FindingKind.CONSTANT_THINK]
    assert ["I look around." in line or "It fits." in line for line in found] == [True, True]


@pytest.mark.parametrize(
    "body",
    [
        'open(os.environ["REQUEST_LOG_FILE"], "a")',
        'open(os.getenv("INFERENCE_STATS_FILE"))',
        'path = os.environ["REQUEST_" + "LOG" + "_FILE"]',
        'path = os.environ["ELIF_GOL_TSEUQER"[::-1]]',
        'path = os.environ["".join(reversed("ELIF_GOL_TSEUQER"))]',
        'path = os.environ["%s_%s_FILE" % ("REQUEST", "LOG")]',
        'path = os.environ["{}_{}_FILE".format("REQUEST", "LOG")]',
        'part = "LOG"; path = os.environ[f"REQUEST_{part}_FILE"]',
        'path = os.environ["sandbox_output_file".upper()]',
        f'path = os.environ[base64.b64decode("{base64.b64encode(b"REQUEST_LOG_FILE").decode()}").decode()]',
        'path = os.environ[codecs.decode("ERDHRFG_YBT_SVYR", "rot13")]',
        f'path = os.environ["".join(chr(n) for n in {[ord(c) for c in "REQUEST_LOG_FILE"]})]',
        f'path = os.environ["".join(chr(n ^ 7) for n in {[ord(c) ^ 7 for c in "REQUEST_LOG_FILE"]})]',
        'path = getattr(os, "environ")["REQUEST_LOG_FILE"]',
        'step["extra_info"]["proxy_calls"] = []',
        'step["extra_info"].update(proxy_calls=[])',
        'step["extra_info"].setdefault("proxy_" "calls", [])',
        'os.system("echo x >> $REQUEST_LOG_FILE")',
        'import subprocess; subprocess.run("cat forged >> $REQUEST_LOG_FILE", shell=True)',
        'import shutil; shutil.copy("/tmp/forged", os.environ["WHO_KNOWS"])',
        'os.replace("/tmp/forged", os.environ["WHO_KNOWS"])',
        'name = "".join(sorted(os.environ)); open(os.environ[name], "a").write("x")',
        'for path in os.environ.values():\n        open(path, "a").write("x")',
        'path = os.environ["WHO_KNOWS"]; open(path, mode="w")',
        'from pathlib import Path; Path(os.environ["WHO_KNOWS"]).write_text("x")',
        'from pathlib import Path; Path(os.environ["WHO_KNOWS"]).open("a")',
        'open("/proc/self/environ")',
        'open("/sandbox/logs/inference_stats.jsonl", "a")',
        'line = {"path": "/inference", "method": "POST", "duration_ms": 1.0, "status_code": 200}',
    ],
)
def test_touching_the_log_is_found_however_it_is_spelled(body: str) -> None:
    assert touching(body)


@pytest.mark.parametrize(
    "body",
    [
        'model = os.environ["SANDBOX_MODEL"]',
        'model = os.environ.get("SANDBOX_MODEL", "REQUEST_LOG")',
        "# REQUEST_LOG_FILE, proxy_calls",
        '"""Does not touch proxy_calls."""',
        'print("the validator fills proxy_calls in from REQUEST_LOG_FILE, so we leave it alone")',
        'open(os.path.join(os.environ["TMPDIR"], "cache.json"), "w")',
        'open(os.environ["SANDBOX_CATALOGUE"]).read()',
        'text = os.environ["SANDBOX_PROXY_URL"].replace("http:", "https:")',
        "proxy_calls = 0; proxy_calls += 1",
        'took = {"path": "/search/find_product", "duration_ms": 3.0}',
        "variables = os.environ.copy()",
        'state = {"request_log": []}; state["request_log"].append(1)',
        'open("/proc/self/status").read()',
        'url = os.environ["SANDBOX_PROXY_URL"].replace("a", "b", 1)',
        'self.client.run("an agent whose proxy_calls are its own")',
    ],
)
def test_reading_the_environment_and_talking_of_the_log_is_no_touching(body: str) -> None:
    assert touching(body) == set()


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("client.timeout = 5", "from src.agent.proxy_client import ProxyClient\nclient = ProxyClient()"),
        (
            "class Agent:\n        def __init__(self):\n            self.client = ProxyClient()\n"
            "            self.client.timeout = 9",
            "from src.agent.proxy_client import ProxyClient",
        ),
        ("client.get('/x', {})", "from src.agent.proxy_client import ProxyClient\nclient = ProxyClient()"),
    ],
)
def test_using_the_client_is_no_touching(body: str, before: str) -> None:
    assert touching(body, before) == set()


@pytest.mark.parametrize(
    "body",
    [
        "ProxyClient.post = lambda self, path, body: {}",
        "client._log({})",
        "setattr(client, 'post', None)",
        "proxy_client.ProxyClient.post = None",
        "client.post = print",
    ],
)
def test_changing_the_client_is_touching(body: str) -> None:
    before = (
        "from src.agent import proxy_client\nfrom src.agent.proxy_client import ProxyClient\nclient = ProxyClient()"
    )
    assert touching(body, before) == {"client"}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("exec(base64.b64decode(problem['x']))", "exec"),
        ("eval('1' + problem['x'])", "eval"),
        ("run = exec; run(problem)", "exec"),
        ("__import__('o' + problem['x'])", "import"),
        ("import marshal; marshal.loads(problem['x'])", "marshal"),
        ("compile(problem['x'], '', 'exec')", "compile"),
        ("getattr(os, problem['x'])('ls')", "getattr"),
        ("globals()[problem['x']]()", "lookup"),
        ("import builtins; builtins.exec(problem['x'])", "exec"),
    ],
)
def test_running_what_cannot_be_read_is_found(body: str, name: str) -> None:
    scanned = read(f"import os, base64\ndef agent_main(problem):\n    {body}\n")
    assert name in names(scanned, FindingKind.OBFUSCATED)


@pytest.mark.parametrize("body", ["import re; re.compile('x')", "import ast; ast.literal_eval('1')", "int('3')"])
def test_ordinary_code_hides_nothing(body: str) -> None:
    assert names(read(f"def agent_main(problem):\n    {body}\n"), FindingKind.OBFUSCATED) == set()


def test_code_that_nothing_runs_is_no_finding() -> None:
    decoy = sources.REGEX + sources.REACT.partition("def agent_main")[2].replace("(problem):", "def decoy(problem):", 1)
    assert read(decoy).dispatch is Dispatch.CODE
    dead = sources.REGEX.replace("    return steps\n", "    if False:\n        ask([])\n    return steps\n")
    assert names(read(dead), FindingKind.MODEL_REQUEST) == set()


def test_an_agent_that_asks_when_the_model_does_not_is_both() -> None:
    source = sources.REACT.replace("    return steps\n", '    execute_tool_call("terminate", {})\n    return steps\n')
    scanned = read(source)
    assert scanned.dispatch is Dispatch.BOTH
    assert names(scanned, CODE) == {"terminate"}


def packed(kind: str, files: dict[str, str]) -> bytes:
    holder = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(holder, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return holder.getvalue()
    with tarfile.open(fileobj=holder, mode="w:gz" if kind == "gz" else "w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return holder.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar", "gz"])
def test_every_source_of_an_archive_is_read(kind: str) -> None:
    files = {"b.py": sources.HYBRID, "a.py": "x = 1\n", "notes.txt": "exec(x)"}
    scanned = scan(packed(kind, files))
    assert scanned.dispatch is Dispatch.BOTH
    assert {one.file for one in scanned.findings} == {1}  # a.py is 0


HOSTILE = [
    b"",
    b"\0" * 10,
    b"def f(:\n",
    b"x = 1\0\n",
    b"\xff\xfe" + "x = 1".encode("utf-16-le"),
    b"# coding: punycode\n" + b"a-" * 20_000,
    b"# coding: no_such\nx = 1\n",
    b"# coding: utf-7\nx = 1\n",
    b"(" * 100_000,
    b"(" * 190 + b")" * 190,
    b"x = " + b"-" * 100_000 + b"1",
    b"x = " + b"not " * 100_000 + b"1",
    b"x = " + b"1+" * 100_000 + b"1",
    b"x = a" + b".a" * 100_000,
    b"x = a" + b"()" * 100_000,
    b"x = a" + b"[0]" * 100_000,
    b"x = " + b"lambda: " * 50_000 + b"0",
    b"".join(b" " * n + b"if x:\n" for n in range(99)) + b" " * 99 + b"pass\n",
    b"if x: pass\n" + b"elif x: pass\n" * 20_000,
    b"x = 1\n" * 1_700_000,
    b"'" * 999_999,
    b'"""' * 333_333,
    b"x = '" + b"\\'" * 400_000,
    b"PK\x03\x04" + b"\0" * 100,
    b"\x1f\x8b" + b"\0" * 100,
    packed("zip", {"a.py": "0" * 50_000_000}),
    packed("gz", {"a.py": "0" * 50_000_000}),
    packed("zip", {f"{n}.py": "x = 1" for n in range(60)}),
    b"x = '%99999999d' % (1,)\ny = 'a' * 99999999999\nz = ''.join(['a' * 20000] * 20000)\n",
    b"y = 'a' * 20000\nz = y.replace('a', y).replace('a', y)\nw = y.join(y)\n",
    b"a = b\nb = a\nopen(a + b)\n",
    "x = '\ud800'".encode("utf-8", "surrogatepass"),
    b"match x:\n case {'a': [*b], **c}: pass\n case A(x=1) | B(): pass\n case _: pass\n",
    b"x = '\\d'\n",
    b"".join(b"a%d = f(%s)\n" % (n, b", ".join([b"a%d" % (n + 1)] * 200)) for n in range(60)) + b"post(a0)\n",
    b"x = ''.join(chr(n + %s) for n in [%s])\n" % (b"+".join([b"1"] * 40), b"1," * 9_000),
    b"def f(%s): pass\n" % b",".join(b"a%d" % n for n in range(1_500)) + b"f(**k)\n" * 1_500,
    b"def m(a): return a\n" * 1_500 + b"x.m(1)\n" * 1_500,
    b"f = lambda: 0\n" * 5_000,
    b"x = [y for y in x]\n" * 2_000,
    b"def f(a):\n return g(a, 'a b')\ndef g(a, b):\n return f(a) + b\n" + b"f('c d')\n" * 2_000,
]


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_no_bytes_make_it_raise(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_flow, "MOST_WORK", 100_000)  # the limit itself is reached in seconds
    assert isinstance(scan(HOSTILE[place]), CodeScan)


def test_what_is_no_python_is_unreadable_and_nothing_else() -> None:
    assert scan(b"def f(:\n") == CodeScan(is_readable=False)
    assert scan(b"x = 1\n") == CodeScan()


@given(st.binary(max_size=300))
def test_bytes_at_random_are_no_harm(raw: bytes) -> None:
    assert isinstance(scan(raw), CodeScan)


@given(st.lists(st.sampled_from(sorted(set(sources.ECHO.split(" ")) | set("()[]{}:,=\n*@"))), max_size=60))
def test_pieces_of_python_are_no_harm(pieces: list[str]) -> None:
    assert isinstance(read(" ".join(pieces)), CodeScan)


@given(st.data())
def test_a_cut_and_patched_source_is_no_harm(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from([sources.TABLE, sources.ECHO, sources.FORGED_CAREFULLY])).splitlines()
    kept = [line for line in lines if data.draw(st.integers(0, 9))]
    assert isinstance(read("\n".join(kept)), CodeScan)


def test_nothing_is_run_or_quoted(capfd: pytest.CaptureFixture[str]) -> None:
    scan(b"import sys\nprint('MARKED')\nx = '\\d MARKED'\nsys.exit(3)\n")
    assert capfd.readouterr() == ("", "")
    tree = ast.parse(Path(agent_source.__file__).read_text())
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called.isdisjoint({"exec", "eval", "compile", "__import__"})


def test_a_scan_is_small() -> None:
    source = "".join(f'execute_tool_call("find_product", {{"q": x{n}}})\n' for n in range(300))
    assert len(scan(source.encode()).findings) == agent_source.MOST_FINDINGS


RECORDED = {
    "crash_mixed": Dispatch.CODE,
    "hybrid_native": Dispatch.BOTH,
    "native_tools": Dispatch.MODEL,
    "regex_zero": Dispatch.CODE,
    "slow_mixed": Dispatch.CODE,
    "spoof_echo": Dispatch.BOTH,
    "spoof_inline": Dispatch.CODE,
    "sub_classify": Dispatch.CODE,
    "sub_extract_score": Dispatch.CODE,
}


@pytest.mark.shared
def test_recorded_sources_are_told_apart(shared_data: Path) -> None:
    scans = {path.stem: scan(path.read_bytes()) for path in sorted((shared_data / "agent_code").glob("*.py"))}
    assert {name: scanned.dispatch for name, scanned in scans.items()} == RECORDED
    assert {name for name, scanned in scans.items() if names(scanned, LOG)} == {"spoof_inline"}
    assert {name for name, scanned in scans.items() if "echoed" in names(scanned, CODE)} == {"spoof_echo"}
