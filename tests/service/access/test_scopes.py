import pytest

from service.access.scopes import DEMANDS, GRANTABLE, Demands, OpenPaths, Scope, route_demands
from service.access.settings import PLATFORM_PATHS
from service.app import create_app
from service.settings import Settings


@pytest.fixture(scope="module")
def routes():
    return create_app(Settings()).routes


@pytest.fixture
def demands(routes):
    return Demands(routes, OpenPaths(PLATFORM_PATHS))


def test_every_route_is_in_the_table_or_open_to_the_platform(routes):
    open_paths = OpenPaths(PLATFORM_PATHS)
    forgotten = [
        (demand.method, demand.template)
        for demand in route_demands(routes)
        if (demand.method, demand.template) not in DEMANDS and demand.template not in open_paths
    ]
    assert forgotten == [], "say in service/access/scopes.py what these routes demand"


def test_the_table_names_no_route_that_is_gone(routes):
    there = {(demand.method, demand.template) for demand in route_demands(routes)}
    assert set(DEMANDS) - there == set()


def test_a_route_that_the_table_does_not_name_demands_admin():
    app = create_app(Settings())
    app.add_api_route("/v1/secrets", lambda: None, methods=["GET"])
    app.add_api_route("/v1/secrets/{name}", lambda: None, methods=["DELETE"])
    demands = Demands(app.routes, OpenPaths(PLATFORM_PATHS))
    assert demands.of("GET", "/v1/secrets") == frozenset({Scope.ADMIN})
    assert demands.of("DELETE", "/v1/secrets/a") == frozenset({Scope.ADMIN})


def test_a_path_that_no_route_has_is_told_to_whoever_may_come_in(demands):
    assert demands.of("GET", "/v1/nothing") == frozenset(GRANTABLE)
    assert demands.of("DELETE", "/v1/forecast") == frozenset(GRANTABLE)


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("POST", "/v1/forecast", Scope.READ),
        ("GET", "/v1/cells", Scope.READ),
        ("GET", "/v1/cells/a%2Fb", Scope.READ),
        ("GET", "/v1/cells/a/forecast", Scope.READ),
        ("POST", "/v1/observations", Scope.WRITE),
    ],
)
def test_a_path_demands_what_its_route_does(demands, method, path, needed):
    assert demands.of(method, path) == frozenset({needed})


@pytest.mark.parametrize(("method", "template"), DEMANDS)
def test_a_path_that_the_router_takes_for_a_route_demands_what_the_route_does(
    demands, method, template
):
    path = template.replace("{", "").replace("}", "")
    # The end of a line passes the router's expressions, which end in a dollar.
    assert demands.of(method, path + "\n") == demands.of(method, path)


def test_the_first_of_two_routes_decides_as_in_the_router():
    app = create_app(Settings())
    app.add_api_route("/v9/{rest:path}", lambda: None, methods=["GET"])
    app.add_api_route("/v9/fixed", lambda: None, methods=["GET"])
    demands = Demands(app.routes, OpenPaths(["/v9/fixed"]))
    assert demands.of("GET", "/v9/other") == frozenset({Scope.ADMIN})
    assert demands.of("GET", "/v9/fixed") is None


@pytest.mark.parametrize(
    "path",
    ["/healthz", "/metrics", "/v2/health/ready", "/ric/v1/config", "/dme/a/b", "/", "/static/a.js"],
)
def test_the_platform_and_the_pages_need_no_token(demands, path):
    assert demands.of("GET", path) is None


@pytest.mark.parametrize("path", ["/healthz/x", "/ric/v1", "/ric/v11/x", "/v2/healthy", "/dme"])
def test_an_open_path_opens_nothing_beside_it(path):
    assert path not in OpenPaths(PLATFORM_PATHS)


def test_a_path_that_the_operator_closes_demands_a_scope(routes):
    assert Demands(routes, OpenPaths(())).of("GET", "/metrics") == frozenset({Scope.READ})


@pytest.mark.parametrize("pattern", ["healthz", "*", "/a*b", "/a**"])
def test_a_pattern_that_means_something_else_is_refused(pattern):
    with pytest.raises(ValueError, match="expected paths such as"):
        OpenPaths([pattern])
