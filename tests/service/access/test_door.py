import httpx
import pytest

from service.access.scopes import DEMANDS, Scope
from service.settings import Settings
from tests.service.fakes import forecast_request, serving

pytestmark = pytest.mark.anyio

SECRETS = {scope: f"0123456789abcdef-{scope}" for scope in ("read", "write", "admin")}
LOCKED = [(method, path, scope) for (method, path), scope in DEMANDS.items()]
OPEN = [("GET", path) for path in ("/healthz", "/readyz", "/metrics")]


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "tokens"
    lines = [f"{scope}er {scope} {secret}" for scope, secret in SECRETS.items()]
    path.write_text("\n".join(lines))
    return Settings(token_file=path)


def bearer(scope):
    return {"authorization": f"Bearer {SECRETS[scope]}"}


def path_of(template):
    return template.replace("{cell}", "a").replace("{name}", "style.css")


async def ask(client, method, template, **headers):
    answer = await client.http.request(method, path_of(template), headers=headers)
    return answer.status_code


@pytest.mark.parametrize(("method", "template", "scope"), LOCKED)
async def test_each_route_lets_in_the_scope_that_it_demands_and_no_other(
    settings, method, template, scope
):
    async with serving(settings) as client:
        held = {one: await ask(client, method, template, **bearer(one)) for one in SECRETS}
        without = await ask(client, method, template)
    is_open = scope is Scope.NONE or (method, template) in OPEN
    assert (without == 401) == (not is_open)
    for one, status in held.items():
        refused = not is_open and one not in (scope, "admin")
        assert (status == 403) == refused, one
        assert status != 401


async def test_no_token_is_a_problem_that_says_which_scheme_to_use(settings):
    async with serving(settings) as client:
        answer = await client.post("/v1/forecast", forecast_request())
        assert await client.metric("rancast_requests_rejected_total", reason="unauthorized") == 1
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == 'Bearer realm="rancast"'
    assert answer.json()["type"] == "urn:rancast:problem:unauthorized"
    assert answer.headers["x-request-id"] in answer.json()["instance"]


@pytest.mark.parametrize("value", ["Bearer wrong", "Bearer ", "bearer " + "x" * 5000])
async def test_a_token_that_is_unknown_is_told_so(settings, value):
    async with serving(settings) as client:
        answer = await client.get("/v1/model", authorization=value)
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize("value", [f"Basic {SECRETS['read']}", SECRETS["read"], "Bearer"])
async def test_what_is_no_bearer_token_is_none(settings, value):
    async with serving(settings) as client:
        answer = await client.get("/v1/model", authorization=value)
    assert answer.status_code == 401
    assert "invalid_token" not in answer.headers["www-authenticate"]


async def test_two_tokens_are_none(settings):
    async with serving(settings) as client:
        headers = [("authorization", f"Bearer {secret}") for secret in SECRETS.values()]
        answer = await client.http.get("/v1/model", headers=headers)
    assert answer.status_code == 401


async def test_the_scheme_is_read_in_any_case(settings):
    async with serving(settings) as client:
        answer = await client.get("/v1/model", authorization=f"bEaReR {SECRETS['read']}")
    assert answer.status_code == 200


async def test_a_scope_that_is_lacking_is_named(settings):
    async with serving(settings) as client:
        answer = await client.post("/v1/observations", {}, **bearer("read"))
        assert await client.metric("rancast_requests_rejected_total", reason="forbidden") == 1
    assert answer.status_code == 403
    assert answer.headers["www-authenticate"].endswith('error="insufficient_scope", scope="write"')
    assert "scope write" in answer.json()["detail"]
    assert "'reader' has read" in answer.json()["detail"]


async def test_whoever_may_come_in_is_told_that_a_route_does_not_exist(settings):
    async with serving(settings) as client:
        assert await ask(client, "GET", "/v1/nothing", **bearer("read")) == 404
        assert await ask(client, "DELETE", "/v1/forecast", **bearer("read")) == 405
        assert await ask(client, "GET", "/v1/nothing") == 401


async def test_a_path_that_the_operator_opens_needs_no_token(settings):
    opened = settings.model_copy(update={"open_paths": ("/v1/model",)})
    async with serving(opened) as client:
        assert await ask(client, "GET", "/v1/model") == 200
        assert await ask(client, "GET", "/metrics") == 401


async def test_a_file_that_changes_changes_who_may_come_in(settings):
    new = "fedcba9876543210-new"
    async with serving(settings) as client:
        settings.token_file.write_text(f"newcomer read {new}\n")
        await client.app.state.reloads.look()
        assert await ask(client, "GET", "/v1/model", **bearer("read")) == 401
        assert await ask(client, "GET", "/v1/model", authorization=f"Bearer {new}") == 200
        counted = await client.metric("rancast_reloads_total", kind="tokens", result="ok")
    assert counted == 1


async def test_a_damaged_file_changes_nothing_and_is_said_once(settings, caplog):
    async with serving(settings) as client:
        settings.token_file.write_text("newcomer read hunter2\n")
        await client.app.state.reloads.look()
        await client.app.state.reloads.look()
        assert await ask(client, "GET", "/v1/model", **bearer("read")) == 200
        counted = await client.metric("rancast_reloads_total", kind="tokens", result="failed")
    assert counted == 1
    (record,) = [r for r in caplog.records if r.message == "reload_failed"]
    assert "line 1" in str(record.rancast_fields["reason"])
    assert "hunter2" not in str(record.rancast_fields)


async def test_settings_that_are_logged_hold_no_token(settings, caplog):
    with caplog.at_level("DEBUG"):
        async with serving(settings) as client:
            await ask(client, "GET", "/v1/model", **bearer("read"))
    logged = "\n".join(f"{r.message} {getattr(r, 'rancast_fields', '')}" for r in caplog.records)
    assert str(settings.token_file) in logged
    assert not any(secret in logged for secret in SECRETS.values())


async def test_a_client_that_asks_too_often_is_told_when_to_come_back():
    async with serving(Settings(rate_limit_per_second=0.4, rate_limit_burst=2)) as client:
        assert [await ask(client, "GET", "/v1/model") for _ in range(3)] == [200, 200, 429]
        answer = await client.get("/v1/model")
        assert answer.headers["retry-after"] == "3"
        assert answer.json()["type"] == "urn:rancast:problem:rate_limited"
        assert await client.metric("rancast_requests_rejected_total", reason="rate_limited") == 2
        client.clock.advance(3)
        assert await ask(client, "GET", "/v1/model") == 200


async def test_probes_are_not_counted_against_a_client():
    async with serving(Settings(rate_limit_per_second=0.1)) as client:
        assert [await ask(client, *probe) for probe in OPEN * 2] == [200] * 6
        assert await ask(client, "GET", "/v1/model") == 200


async def test_tokens_are_counted_apart_and_guesses_together(settings):
    limited = settings.model_copy(update={"rate_limit_per_second": 0.1})
    async with serving(limited) as client:
        assert await ask(client, "GET", "/v1/model", **bearer("read")) == 200
        assert await ask(client, "GET", "/v1/model", **bearer("admin")) == 200
        assert await ask(client, "GET", "/v1/model", **bearer("read")) == 429
        assert await ask(client, "GET", "/v1/model", authorization="Bearer guess-1") == 401
        assert await ask(client, "GET", "/v1/model", authorization="Bearer guess-2") == 429


async def test_the_addresses_of_one_network_are_counted_together():
    async with serving(Settings(rate_limit_per_second=0.1)) as client:
        statuses = []
        for address in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
            transport = httpx.ASGITransport(app=client.app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
                statuses.append((await http.get("/v1/model")).status_code)
    assert statuses == [200, 429, 200]


async def test_a_head_with_too_many_headers_or_bytes_is_refused():
    async with serving(Settings(max_headers=10, max_head_bytes=2048)) as client:
        many = {f"x-{i}": "1" for i in range(11)}
        assert await ask(client, "GET", "/healthz", **many) == 431
        assert await ask(client, "GET", "/healthz", big="x" * 2048) == 431
        assert await ask(client, "GET", "/healthz", big="x" * 512) == 200
        counted = await client.metric("rancast_requests_rejected_total", reason="head_too_large")
    assert counted == 2


@pytest.mark.parametrize("target", ["/v1/cells/{}", "/healthz?{}"])
async def test_a_path_and_a_query_count_as_parts_of_the_head(target):
    async with serving(Settings(max_head_bytes=2048)) as client:
        assert await ask(client, "GET", target.format("x" * 512)) in (200, 404)
        assert await ask(client, "GET", target.format("x" * 2048)) == 431
