"""deploy/: what the files say fits the app and each other, and the systemd unit is one that systemd takes.

What no test can do here is said in deploy/README.md: an image is built and a cluster is told elsewhere.
"""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from vizformer import cli

DEPLOY = Path(__file__).parents[1] / "deploy"
HEALTH = "/_stcore/health"
ANALYZE = shutil.which("systemd-analyze")


def instructions(file: str = "Containerfile") -> dict[str, list[str]]:
    """The instructions of a file that makes an image, by name."""
    text = (DEPLOY / file).read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
    found = defaultdict(list)
    for line in filter(None, lines):
        name, _, rest = line.partition(" ")
        found[name].append(rest)
    return found


def unit() -> dict[str, list[str]]:
    """The settings of the systemd unit, in the order in which they count."""
    found = defaultdict(list)
    for line in (DEPLOY / "vizformer@.service").read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def manifests() -> dict[str, dict]:
    """The objects of the manifest, by kind."""
    text = (DEPLOY / "kubernetes" / "vizformer.yaml").read_text(encoding="utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def understood(arguments: list[str]) -> dict[str, object]:
    """What the command makes of these arguments; it ends where it does not know one."""
    return cli.main.make_context("vizformer", list(arguments)).params


def test_the_image_starts_the_app_and_looks_after_it() -> None:
    image = instructions()
    (port,) = image["EXPOSE"]
    command, *entry = json.loads(image["ENTRYPOINT"][0])
    started = understood([*entry, *json.loads(image["CMD"][0])])
    assert command == "/opt/vizformer/bin/vizformer"
    assert (started["host"], started["port"]) == ("0.0.0.0", int(port))
    assert all(started[switch] for switch in ("no_upload", "no_hub", "no_path"))
    python, flag, code = json.loads(image["HEALTHCHECK"][0].partition(" CMD ")[2])
    assert (python, flag) == ("/opt/vizformer/bin/python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert f":{port}{HEALTH}" in code
    assert image["USER"] == ["10001"]
    assert "HOME=/tmp VIZFORMER_STATE=/tmp/state" in image["ENV"][0]
    for base in image["FROM"]:
        assert base.startswith("${BASE}")


def test_the_image_of_a_space_listens_where_the_space_looks() -> None:
    image = instructions("space/Dockerfile")
    _, head, _ = (DEPLOY / "space" / "README.md").read_text(encoding="utf-8").split("---\n")
    said, command = yaml.safe_load(head), json.loads(image["CMD"][0])
    started = understood(command[1:])
    assert (command[0], said["sdk"], image["USER"]) == ("vizformer", "docker", ["1000"])
    assert (started["host"], started["port"]) == ("0.0.0.0", said["app_port"])
    assert image["EXPOSE"] == [str(said["app_port"])]
    assert all(started[switch] for switch in ("no_upload", "no_hub", "no_path"))


def test_the_notebook_of_binder_draws_a_sentence() -> None:
    cells = json.loads((DEPLOY / "binder" / "vizformer.ipynb").read_text(encoding="utf-8"))["cells"]
    install, *code = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert install.startswith("%pip install")
    assert install.endswith(" vizformer")
    *before, last = "\n".join(code).splitlines()
    assert last.startswith("vf.view(")
    given: dict[str, object] = {}
    exec("\n".join(before), given)
    assert "vf-attention" in eval(last, given)._repr_html_()


def test_the_manifests_fit_the_image_and_each_other() -> None:
    image, found = instructions(), manifests()
    assert set(found) == {"Deployment", "Service", "Ingress", "PodDisruptionBudget"}
    pods = found["Deployment"]["spec"]
    pod = pods["template"]["spec"]
    (container,) = pod["containers"]
    understood(container["args"])
    (port,) = container["ports"]
    assert [str(port["containerPort"])] == image["EXPOSE"]
    assert [str(pod["securityContext"]["runAsUser"])] == image["USER"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert mounts.keys() == {"/tmp"}  # where the image writes
    assert list(mounts.values()) == [one["name"] for one in pod["volumes"]]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": HEALTH, "port": port["name"]}
    labels = pods["template"]["metadata"]["labels"]
    assert pods["selector"]["matchLabels"] == found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] < pods["replicas"]
    (service_port,) = found["Service"]["spec"]["ports"]
    assert service_port["targetPort"] == port["name"]
    (rule,) = found["Ingress"]["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    backend = path["backend"]["service"]
    assert (backend["name"], backend["port"]["name"]) == (found["Service"]["metadata"]["name"], service_port["name"])
    hosts = next(one["value"] for one in container["env"] if one["name"] == "VIZFORMER_HOSTS")
    assert rule["host"] == hosts


def test_the_unit_starts_the_app_at_its_port_for_this_machine_alone() -> None:
    found = unit()
    _, *arguments = found["ExecStart"][0].replace("%i", "8501").split()
    started = understood(arguments)
    assert (started["host"], started["port"]) == ("127.0.0.1", 8501)
    assert all(started[switch] for switch in ("no_upload", "no_hub", "no_path"))
    assert found["DynamicUser"] == ["yes"]
    assert f"VIZFORMER_STATE=%S/{found['StateDirectory'][0]}" in found["Environment"][0]
    config = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert "server 127.0.0.1:8501 " in config


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not here (it comes with systemd)")
def test_systemd_takes_the_unit_and_finds_little_exposed(tmp_path: Path) -> None:
    written = (DEPLOY / "vizformer@.service").read_text(encoding="utf-8")
    copy = tmp_path / "vizformer@.service"
    copy.write_text(
        written.replace("/opt/vizformer/bin/vizformer", sys.executable), encoding="utf-8"
    )  # it has to exist
    verified = subprocess.run([ANALYZE, "verify", copy], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    command = [ANALYZE, "security", "--offline=true", "--threshold=15", copy]  # tenths; it has 12
    judged = subprocess.run(command, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout
