"""The files in deploy/ are valid, and name only options, routes and metrics that there are."""

import contextlib
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path

import promql_parser
import pytest
import yaml
from click.testing import CliRunner

from refold._cli.main import cli
from refold.testing.provider import ScriptedProvider
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import call, chat

DEPLOY = Path(__file__).parents[1] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/refold.json").read_text())
VARIABLES = {"$__rate_interval": "1m", "$__range": "1h", "$instance": ".*"}  # of Grafana
METRIC = re.compile(r"\brefold_\w+")


def alerts():
    groups = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def panels():
    return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in DASHBOARD["panels"]}


def filled(expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


def where(command):
    """Have a test on machines that have this program."""
    return lambda test: test if shutil.which(command) else None


def accepted(*command):
    """Run a program that checks a file, and expect it to accept it."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def manifests():
    return {
        (document["kind"], document["metadata"]["name"]): document
        for document in yaml.safe_load_all((DEPLOY / "kubernetes/refold.yaml").read_text())
    }


def checked(*arguments, **environment):
    """Run `refold serve --check` with more arguments; return what it says and its exit code."""
    result = CliRunner().invoke(cli, ["serve", *arguments, "--check"], env=environment)
    return result.output, result.exit_code


@pytest.fixture(scope="module")
def metrics():
    with ScriptedProvider() as provider, standing(provider, window=8_000, background=False) as serving:
        call(serving.url, body=chat(10))
        page = call(serving.url, "GET", "/metrics")[2].decode()
    return frozenset(re.findall(r"^# TYPE (\w+)", page, re.M))


@pytest.mark.parametrize("expression", [*alerts().values(), *(each for group in panels().values() for each in group)])
def test_an_expression_is_promql_over_metrics_that_the_gateway_has(expression, metrics):
    expression = filled(expression)
    promql_parser.parse(expression)
    named = {re.sub(r"_(bucket|count|sum)$", "", name) for name in METRIC.findall(expression)}
    assert named <= metrics | {"refold"}


@where("promtool")
def test_prometheus_takes_the_alerts_and_the_expressions_of_the_dashboard(tmp_path):
    assert f"SUCCESS: {len(alerts())} rules found" in accepted(
        "promtool", "check", "rules", DEPLOY / "prometheus/alerts.yml"
    )
    expressions = [filled(each) for group in panels().values() for each in group]
    rules = [{"record": f"panel_{number}", "expr": each} for number, each in enumerate(expressions)]
    place = tmp_path / "panels.yml"
    place.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in accepted("promtool", "check", "rules", place)


@where("promtool")
def test_prometheus_raises_each_alert_when_what_it_is_for_happens():
    accepted("promtool", "test", "rules", DEPLOY / "prometheus/alerts_test.yml")
    cases = yaml.safe_load((DEPLOY / "prometheus/alerts_test.yml").read_text())["tests"]
    raised = {rule["alertname"] for case in cases for rule in case["alert_rule_test"] if rule.get("exp_alerts")}
    assert raised == alerts().keys()


@where("hadolint")
def test_the_linter_of_dockerfiles_finds_nothing():
    accepted("hadolint", DEPLOY / "Dockerfile")


@where("kubernetes-validate")
def test_kubernetes_takes_the_manifests():
    accepted("kubernetes-validate", "--strict", DEPLOY / "kubernetes/refold.yaml")


def test_every_alert_says_what_it_means_and_how_severe_it_is():
    groups = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}


def test_no_two_panels_of_the_dashboard_lie_over_each_other():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (column, row)
            for column in range(place["x"], place["x"] + place["w"])
            for row in range(place["y"], place["y"] + place["h"])
        }
        assert max(column for column, _ in cells) < 24
        assert not cells & taken
        taken |= cells


def test_the_settings_of_the_image_pass_the_check(tmp_path):
    text, code = checked("--config", DEPLOY / "gateway.toml", "--store", tmp_path / "g.db", REFOLD_GATEWAY_TOKEN="t")
    assert code == 0
    assert re.search(r"^host +0\.0\.0\.0 .*gateway\.toml", text, re.M)


def test_the_settings_of_the_image_need_a_token():
    text, code = checked("--config", DEPLOY / "gateway.toml", "--store", "memory", REFOLD_GATEWAY_TOKEN="")
    assert code == 2
    assert "REFOLD_GATEWAY_TOKEN" in text


def test_the_settings_of_the_config_map_pass_the_check(tmp_path):
    place = tmp_path / "gateway.toml"
    place.write_text(manifests()["ConfigMap", "refold"]["data"]["gateway.toml"])
    assert checked("--config", place, "--store", "memory", REFOLD_GATEWAY_TOKEN="t")[1] == 0


def test_the_image_runs_a_command_that_the_package_has():
    text = (DEPLOY / "Dockerfile").read_text()
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.M)[1])
    assert entry[:2] == ["refold", "serve"]
    assert checked(*entry[2:-1], DEPLOY / "gateway.toml", "--store", "memory", REFOLD_GATEWAY_TOKEN="t")[1] == 0
    root = DEPLOY.parent
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M):
        assert all((root / name).exists() for name in line.split())


def test_probes_and_scrapes_ask_for_routes_that_answer():
    container = manifests()["Deployment", "refold"]["spec"]["template"]["spec"]["containers"][0]
    paths = {container[kind]["httpGet"]["path"] for kind in ("readinessProbe", "livenessProbe")}
    paths |= set(re.findall(r"127\.0\.0\.1:8787(/\w+)", (DEPLOY / "Dockerfile").read_text()))
    scrape = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"][0]
    with ScriptedProvider() as provider, standing(provider) as serving:
        for path in (*paths, scrape["metrics_path"]):
            assert call(serving.url, "GET", path)[0] == 200


def test_a_replica_stays_in_the_service_while_its_database_is_away(tmp_path):
    (container,) = manifests()["Deployment", "refold"]["spec"]["template"]["spec"]["containers"]
    place = tmp_path / "gateway.db"
    with (
        ScriptedProvider() as provider,
        standing(provider, store=str(place)) as serving,
        contextlib.closing(sqlite3.connect(place, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        assert call(serving.url, "GET", "/readyz")[0] == 503
        assert call(serving.url, "GET", container["readinessProbe"]["httpGet"]["path"])[0] == 200


def test_selectors_of_the_manifests_choose_the_pods_of_the_deployment():
    found = manifests()
    labels = found["Deployment", "refold"]["spec"]["template"]["metadata"]["labels"].items()
    assert found["Service", "refold"]["spec"]["selector"].items() <= labels
    assert found["PodDisruptionBudget", "refold"]["spec"]["selector"]["matchLabels"].items() <= labels
    assert found["Deployment", "refold"]["spec"]["selector"]["matchLabels"].items() <= labels


def test_compose_mounts_files_that_are_there_and_gives_the_gateway_its_secrets():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for service in compose["services"].values():
        for mount in service.get("volumes", ()):
            if mount.startswith("."):
                assert (DEPLOY / mount.split(":")[0]).is_file()
    gateways = {name for name in compose["services"] if name.startswith("gateway-")}
    scraped = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"][0]["static_configs"]
    assert {target.split(":")[0] for target in scraped[0]["targets"]} == gateways
    for name in gateways:
        assert "REFOLD_GATEWAY_TOKEN" in compose["services"][name]["environment"]


def test_the_password_of_the_database_is_in_the_environment_and_in_no_argument():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["gateway-1"]
    (container,) = manifests()["Deployment", "refold"]["spec"]["template"]["spec"]["containers"]
    assert "PASSWORD" not in str(compose["command"])
    assert "PGPASSWORD" in compose["environment"]
    assert "PGPASSWORD" in {each["name"] for each in container["env"]}
    assert "postgresql://refold@" in (DEPLOY / "kubernetes/refold.yaml").read_text()


def test_the_unit_runs_commands_that_the_package_has():
    text = (DEPLOY / "systemd/refold.service").read_text()
    for line in re.findall(r"^ExecStart(?:Pre)?=(.*)$", text, re.M):
        words = shlex.split(line)
        assert words[0].endswith("/bin/refold")
        arguments = [str(DEPLOY / "gateway.toml") if word.endswith("gateway.toml") else word for word in words[2:]]
        more = [word for word in arguments if word != "--check"]
        assert checked(*more, "--store", "memory", REFOLD_GATEWAY_TOKEN="t")[1] == 0


@where("systemd-analyze")
def test_systemd_takes_the_unit(tmp_path):
    text = (DEPLOY / "systemd/refold.service").read_text().replace("/opt/refold/bin/refold", shutil.which("true"))
    unit = tmp_path / "refold.service"
    unit.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "refold.service" not in done.stderr
