"""The console's defences: login, sessions, host, origin, the policy of its pages, and content that is an attack."""

from __future__ import annotations

import pytest

from kafkapy.console.pages.messages import MOST_SEARCHES
from tests.console.conftest import HOSTILE
from tests.console_process import ConsoleProcess, Visitor


def test_a_page_without_a_login_leads_to_the_login(console):
    visitor = Visitor(console.origin)
    reply = visitor.get("/c/test/topics?q=x", follow=False)
    assert reply.status == 303
    assert reply.headers["location"] == "/login?next=%2Fc%2Ftest%2Ftopics%3Fq%3Dx"
    assert "orders" not in visitor.get("/c/test/topics").text


def test_a_wrong_token_is_refused(console):
    reply = Visitor(console.origin).post("/login", {"token": "guess"})
    assert reply.status == 403
    assert "The token is wrong." in reply.plain


def test_the_cookie_is_for_this_server_only(console):
    reply = Visitor(console.origin).get(console.address.removeprefix(console.origin), follow=False)
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert reply.headers["location"] == "/"


@pytest.mark.parametrize(
    "target", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
def test_a_login_never_leads_to_another_site(console, target):
    token = console.address.partition("token=")[2]
    reply = Visitor(console.origin).post("/login", {"token": token, "next": target}, follow=False)
    assert reply.status == 303
    assert reply.headers["location"] == "/"


def test_logging_out_ends_the_session(console):
    visitor = console.visitor()
    assert visitor.get("/c/test/").status == 200
    visitor.post("/logout", {"form_token": visitor.form_token})
    assert visitor.get("/c/test/", follow=False).status == 303


def test_a_forged_logout_changes_nothing(console):
    visitor = console.visitor()
    visitor.post("/logout", {"form_token": "forged"})
    assert visitor.get("/c/test/", follow=False).status == 200


@pytest.mark.parametrize("path", ["/login", "/c/test/", "/static/console.css", "/nothing"])
def test_every_response_has_the_policy(console, visitor, path):
    headers = visitor.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_pages_have_no_inline_script_or_style(visitor):
    for path in ("/c/test/", "/c/test/topics", "/c/test/topics/orders", "/c/test/group?id=billing"):
        text = visitor.get(path).text
        assert "<script>" not in text
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick=" not in text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1:80", ""])
def test_a_request_for_another_host_is_refused(visitor, host):
    """A page of another site that resolves to this address (DNS rebinding) has its own name in `Host`."""
    assert visitor.get("/c/test/", headers={"Host": host}).status == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_change_from_another_origin_is_refused(visitor, headers):
    reply = visitor.post("/logout", {"form_token": visitor.form_token}, headers=headers)
    assert reply.status == 403
    assert visitor.get("/c/test/", follow=False).status == 200


def test_a_large_body_is_refused_before_it_is_read(visitor):
    connection = visitor.connection()
    connection.putrequest("POST", "/login")
    connection.putheader("Origin", visitor.origin)
    connection.putheader("Content-Length", str(2 << 20))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def begin_live(visitor):
    """Opens a live page; returns its connection, and whether the console has refused to search."""
    connection = visitor.connection()
    cookies = "; ".join(map("=".join, visitor.cookies.items()))
    connection.request("GET", "/c/test/topics/empty?from=live", headers={"Cookie": cookies})
    response = connection.getresponse()
    read = b""
    while b"Waiting for records" not in read and b"searches already" not in read:
        read += response.read1(1000)
    return connection, b"searches already" in read


def test_searches_are_limited_and_stop_when_the_browser_leaves(visitor):
    running = [begin_live(visitor) for _ in range(MOST_SEARCHES + 1)]
    for connection, _ in running:
        connection.close()
    assert [is_refused for _, is_refused in running] == [False] * MOST_SEARCHES + [True]
    free = 0
    while free < MOST_SEARCHES:  # live pages would run for a quarter of an hour
        again = [begin_live(visitor) for _ in range(MOST_SEARCHES)]
        free = sum(not is_refused for _, is_refused in again)
        for connection, _ in again:
            connection.close()
    while begin_live(visitor)[1]:
        pass


def test_an_export_that_would_be_one_search_too_many_is_refused_and_not_kept_waiting(visitor):
    running = []
    while len(running) < MOST_SEARCHES:  # an earlier test's searches may take a moment to end
        connection, is_refused = begin_live(visitor)
        if is_refused:
            connection.close()
        else:
            running.append(connection)
    reply = visitor.get("/c/test/topics/orders/export?from=oldest&as=json")
    assert reply.status == 503
    assert f"The console runs {MOST_SEARCHES} searches already." in reply.plain
    for connection in running:
        connection.close()
    while visitor.get("/c/test/topics/orders/export?from=oldest&as=json").status != 200:
        pass


@pytest.mark.parametrize("path", ["/c/test/topics/hostile?from=oldest", "/c/test/topics/hostile/records/0/0"])
def test_markup_in_a_record_is_text(visitor, path):
    text = visitor.get(path).text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


@pytest.mark.parametrize("decoder", ["auto", "text", "json", "msgpack", "hex", "coordinator", "metadata"])
def test_every_decoder_survives_every_content(visitor, decoder):
    reply = visitor.get(f"/c/test/topics/hostile?from=oldest&kd={decoder}&vd={decoder}")
    assert reply.status == 200
    assert "All records were read." in reply.plain
    for offset in range(len(HOSTILE)):
        assert visitor.get(f"/c/test/topics/hostile/records/0/{offset}?kd={decoder}&vd={decoder}").status == 200


def test_another_address_needs_users_who_log_in(tmp_path):
    process = ConsoleProcess(tmp_path, "--bootstrap-server", "localhost:1", "--listener", "0.0.0.0:0")
    with pytest.raises(AssertionError, match=r"not an address of the loopback interface: give --login cluster"):
        process.start()


def test_too_many_failed_logins_are_refused(broker, tmp_path):
    with ConsoleProcess(tmp_path, "--bootstrap-server", broker.bootstrap) as console:
        visitor = Visitor(console.origin)
        statuses = [visitor.post("/login", {"token": f"guess {number}"}).status for number in range(12)]
        assert statuses == [403] * 10 + [429] * 2


def test_an_unreachable_cluster_is_named(tmp_path):
    with ConsoleProcess(tmp_path, "--cluster", "gone=localhost:1") as console:
        reply = console.visitor().get("/c/gone/")
        assert reply.status == 504
        assert "The cluster gone cannot be reached. Connection to the bootstrap server" in reply.plain
