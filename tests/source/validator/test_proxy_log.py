"""Lines of an access log: every format of nginx's that says when and what, garbage, and that nothing fails."""

from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.domain.attribution.witness import Served
from service.errors import ErrorCode, SluiceError
from service.source.validator.proxy_log import LogFormat, compile_format, read

COMBINED = compile_format("combined")
TIMED = (
    "log_format timed escape=default '$remote_addr - $remote_user [$time_iso8601] \"$request\" '\n"
    "    '$status $body_bytes_sent $request_length ${request_time} $msec';"
)
AT = datetime(2026, 5, 4, 19, 0, 5, tzinfo=UTC)
AT_MS = int(AT.timestamp() * 1000)


def test_a_combined_line() -> None:
    served = read(
        b'172.18.0.5 - - [04/May/2026:21:00:05 +0200] "GET /search/find_product?q=waist%2Bbag&page=1&price= HTTP/1.1" '
        b'200 2291 "-" "python-requests/2.32"',
        COMBINED,
    )
    arguments = {"q": "waist+bag", "page": "1", "price": ""}
    assert served == Served(AT_MS, 1_000, "GET", "/search/find_product", arguments, 200, 2291, None, None)


def test_a_line_with_everything() -> None:
    served = read(
        b'::1 - - [2026-05-04T19:00:05+00:00] "POST /inference/chat/completions HTTP/1.1" 200 812 4096 0.215 '
        + f"{AT_MS / 1000 + 0.125:.3f}".encode(),
        compile_format(TIMED),
    )
    assert served == Served(AT_MS + 125, 1, "POST", "/inference/chat/completions", {}, 200, 812, 4096, 0.215)


def test_json_lines() -> None:
    log_format = compile_format(
        'escape=json {"t":"$msec","r":"$request_uri","m":"$request_method","a":"$http_user_agent"}'
    )
    served = read(b'{"t":"1777921205.5","r":"/a?x=1\\u00e9","m":"GET","a":"say \\"hi\\" \\\\"}', log_format)
    assert served is not None
    assert (served.method, served.path, served.arguments) == ("GET", "/a", {"x": "1\u00e9"})


def test_parts_of_a_target() -> None:
    served = read(b"1777921205.000 /a q=1&q=2", compile_format("$msec $uri $args"))
    assert served is not None
    assert (served.path, served.arguments, served.status) == ("/a", {"q": "1"}, None)


def test_what_nginx_escapes_is_read_back() -> None:
    line = rb'- - - [04/May/2026:19:00:05 +0000] "GET /a?q=\x22\xC3\xA9\x5C HTTP/1.1" 200 1 "-" "-"'
    served = read(line, COMBINED)
    assert served is not None
    assert served.arguments == {"q": '"\u00e9\\'}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\0\0\0",
        b"no log line at all",
        rb'1.2.3.4 - - [04/May/2026:19:00:05 +0000] "\x16\x03\x01" 400 157 "-" "-"',
        b'1.2.3.4 - - [04/May/2026:19:00:05 +0000] "-" 400 0 "-" "-"',
        b'1.2.3.4 - - [34/May/2026:19:00:05 +0000] "GET / HTTP/1.1" 200 0 "-" "-"',
        b'1.2.3.4 - - [04/Mai/2026:19:00:05 +0000] "GET / HTTP/1.1" 200 0 "-" "-"',
        b'1.2.3.4 - - [04/May/2026:19:00:05 +0000] "GET / HTTP/1.1" 200 0 "-"',
        b'1.2.3.4 - - [04/May/2026:19:00:05 +0000] "GET /' + b"x" * 3_000 + b' HTTP/1.1" 200 0 "-" "-"',
        b'1.2.3.4 - - [04/May/2026:19:00:05 +0000] "GET /?' + b"a=1&" * 200 + b' HTTP/1.1" 200 0 "-" "-"',
        b"x" * 70_000,
    ],
)
def test_garbage(line: bytes) -> None:
    assert read(line, COMBINED) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("$request $status", "when"),
        ("$time_local $status", "what"),
        ("", "when"),
        ("$msec$request", "nothing between"),
    ],
)
def test_formats_that_cannot_serve(text: str, what: str) -> None:
    with pytest.raises(SluiceError, match=what) as refused:
        compile_format(text)
    assert refused.value.code is ErrorCode.BAD_INPUT


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read(line: bytes) -> None:
    for log_format in (COMBINED, compile_format(TIMED)):
        read(line, log_format)


FIELDS = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=20)


@given(FIELDS, FIELDS, FIELDS, FIELDS)
def test_any_text_in_any_field_can_be_read(address: str, request: str, when: str, size: str) -> None:
    read(f'{address} - - [{when}] "{request}" 200 {size} "-" "-"'.encode(), COMBINED)


@given(st.text(max_size=40))
def test_any_text_is_a_format_or_refused(text: str) -> None:
    try:
        compiled = compile_format(text)
    except SluiceError:
        return
    assert isinstance(compiled, LogFormat)


@given(
    st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2090, 1, 1)),  # noqa: DTZ001 - made aware below
    st.sampled_from(["GET", "POST"]),
    st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=12), max_size=4),
    st.integers(100, 599),
    st.integers(0, 10**12),
    FIELDS,
)
def test_a_written_line_is_read_back(
    at: datetime, method: str, arguments: dict[str, str], status: int, size: int, agent: str
) -> None:
    assume(not any("\ud800" <= mark <= "\udfff" for mark in "".join([*arguments, *arguments.values()])))
    moment = at.replace(microsecond=0, tzinfo=UTC)
    # nginx escapes quotes and backslashes as \x22 and \x5C.
    quoted = agent.replace("\\", "\\x5C").replace('"', "\\x22")
    line = (
        f"10.0.0.1 - - [{moment:%d/%b/%Y:%H:%M:%S} +0000] "
        f'"{method} /search/find_product?{urlencode(arguments)} HTTP/1.1" {status} {size} "-" "{quoted}"'
    )
    expected = {name.replace("\0", "\ufffd"): value.replace("\0", "\ufffd") for name, value in arguments.items()}
    assert read(line.encode(), COMBINED) == Served(
        int(moment.timestamp() * 1000), 1_000, method, "/search/find_product", expected, status, size, None, None
    )
