"""Manifests in docker/kubernetes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2] / "docker/kubernetes"
SCHEMAS = "kubernetes-validate==1.37.0"
# Strict schemas reject fields that Kubernetes does not know. The newest version and one of two years before.
VERSIONS = ("1.31", "1.37")
VALIDATES = """
import json, sys, kubernetes_validate
for manifest in json.load(sys.stdin):
    for version in sys.argv[1:]:
        kubernetes_validate.validate(manifest, version, strict=True)
"""
# Fields of KubeRay's resource that the manifest uses, with the mandatory ones.
RAY_CLUSTER = {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"}
RAY_HEAD = {"rayStartParams", "template"}
RAY_WORKERS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}


def manifests() -> list[dict[str, Any]]:
    files = (file for file in sorted(ROOT.rglob("*.yaml")) if file.name != "kustomization.yaml")
    return [manifest for file in files for manifest in yaml.safe_load_all(file.read_text())]


def ray_cluster() -> dict[str, Any]:
    (cluster,) = (manifest for manifest in manifests() if manifest["kind"] == "RayCluster")
    return cluster["spec"]


def pods() -> dict[str, dict[str, Any]]:
    """Return the specification of each pod by the name of its container."""
    (job,) = (manifest for manifest in manifests() if manifest["kind"] == "Job")
    groups = [job["spec"], ray_cluster()["headGroupSpec"], *ray_cluster()["workerGroupSpecs"]]
    found = [group["template"]["spec"] for group in groups]
    return {pod["containers"][0]["name"]: pod for pod in found}


each_pod = pytest.mark.parametrize("pod", [pytest.param(pod, id=name) for name, pod in pods().items()])


def test_kustomizations_list_every_manifest() -> None:
    listed = {
        (file.parent / name).resolve()
        for file in ROOT.rglob("kustomization.yaml")
        for name in yaml.safe_load(file.read_text())["resources"]
    }
    assert {path for path in listed if path.is_file()} == {*ROOT.rglob("*.yaml")} - {*ROOT.rglob("kustomization.yaml")}
    assert {path for path in listed if path.is_dir()} == {ROOT / "base"}


def test_kustomizations_set_the_registry_of_every_image() -> None:
    for file in ROOT.rglob("kustomization.yaml"):
        used = {image for name, image in images() if (file.parent / name).is_file()}
        assert used == {image["name"] for image in yaml.safe_load(file.read_text()).get("images", [])}


def images() -> set[tuple[str, str]]:
    """Return pairs of a file name and the name of an image in this file."""
    lines = [(file.name, line.split()) for file in ROOT.rglob("*.yaml") for line in file.read_text().splitlines()]
    return {(name, words[1]) for name, words in lines if words[:1] == ["image:"]}


@each_pod
def test_containers_may_do_as_little_as_possible(pod: dict[str, Any]) -> None:
    identity = pod["securityContext"]
    assert identity["runAsNonRoot"] is True
    assert identity["runAsUser"] == identity["fsGroup"] == 1000, "the user of the images"
    assert identity["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        rights = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert container["securityContext"] == rights


@each_pod
def test_containers_have_resources_and_room_for_temporary_files(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    assert {"cpu", "memory"} == set(container["resources"]["requests"]) == set(container["resources"]["limits"])
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert {"/tmp", "/dev/shm"} <= set(mounts)
    assert set(mounts.values()) == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("name", ["train", "head"])
def test_runs_are_stored_in_the_claimed_volume(name: str) -> None:
    (claim,) = (manifest for manifest in manifests() if manifest["kind"] == "PersistentVolumeClaim")
    volumes = {volume["name"]: volume for volume in pods()[name]["volumes"]}
    (mount,) = (mount for mount in pods()[name]["containers"][0]["volumeMounts"] if mount["mountPath"] == "/workspace")
    assert volumes[mount["name"]]["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}


@pytest.mark.parametrize(
    ("earlier", "command"),
    [
        ([], "train breakout --name job_train"),
        (["1-pong-other/checkpoints/000009"], "train breakout --name job_train"),
        (["1-pong-job_long-train/checkpoints/000009"], "train breakout --name job_train"),
        (["1-pong-job_train/checkpoints/000009"], "train --resume runs/1-pong-job_train"),
        (["1-pong-job_train/checkpoints/000009", "2-pong-job_train"], "train --resume runs/1-pong-job_train"),
        (["1-pong-job_train/seed-1/checkpoints/000009"], "train --resume runs/1-pong-job_train"),
    ],
)
def test_replaced_pod_resumes_the_run_of_its_job(earlier: list[str], command: str, tmp_path: Path) -> None:
    container = pods()["train"]["containers"][0]
    arguments, (job,) = container["args"], container["env"]
    assert job["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['batch.kubernetes.io/job-name']"
    for name in earlier:
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "puffer").write_text('#!/bin/sh\necho "$*"\n')
    (tmp_path / "puffer").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", job["name"]: "train"}
    done = subprocess.run(arguments, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == f"{command}\n"


def test_ray_cluster_has_the_fields_and_version_of_its_operator() -> None:
    cluster = ray_cluster()
    assert set(cluster) == RAY_CLUSTER
    assert set(cluster["headGroupSpec"]) == RAY_HEAD
    assert all(set(group) == RAY_WORKERS for group in cluster["workerGroupSpecs"])
    assert cluster["rayVersion"] in (ROOT.parents[1] / "docker/locks/envs.txt").read_text().partition("ray==")[2][:10]


@pytest.mark.nightly
def test_manifests_pass_the_strict_schemas_of_kubernetes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"--target={tmp_path}"]
    done = subprocess.run([*command, SCHEMAS], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip install {SCHEMAS} failed: {done.stderr.strip()[-300:]}")
    known = [manifest for manifest in manifests() if manifest["kind"] != "RayCluster"]
    known += [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod} for pod in pods().values()]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", VALIDATES, *VERSIONS]
    done = subprocess.run(command, input=json.dumps(known), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
