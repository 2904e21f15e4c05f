"""The files in the guide to deploying work: a proxy with TLS in front, and a systemd unit."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operate" / "deploying.md").read_text(encoding="utf-8")
RUN = ROOT / "tests" / "fixtures" / "runs" / "classify"
NAME, KEY = "models.example.org", "a-key-of-24-characters-x"


def snippet(language):
    return re.search(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)[1]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(port)


@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="needs nginx")
def test_the_proxy_of_the_guide_answers_over_tls(tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={NAME}"
    subprocess.run([*make.split(), "-keyout", key, "-out", certificate], check=True)
    server, proxy = free_port(), free_port()
    site = snippet("nginx").replace("8000", str(server)).replace("443", f"127.0.0.1:{proxy}")
    site = re.sub(r"(ssl_certificate) .*;", rf"\1 {certificate};", site)
    site = re.sub(r"(ssl_certificate_key) .*;", rf"\1 {key};", site)
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off; client_body_temp_path {tmp_path};\n{site}}}\n"
    )
    serve = f"-m glassformer serve {tmp_path}/run --port {server} --key {KEY} --allow-host {NAME}"
    processes = [
        subprocess.Popen(
            [sys.executable, *serve.split()], env=os.environ | {"OMP_NUM_THREADS": "1"}
        ),
        subprocess.Popen(["nginx", "-c", config, "-e", tmp_path / "error.log"]),
    ]
    try:
        wait_for(server)
        wait_for(proxy)
        body = {"model": "run", "input": "a bright film"}
        headers = {"Authorization": f"Bearer {KEY}", "Host": NAME}
        with httpx.Client(verify=False, base_url=f"https://127.0.0.1:{proxy}") as client:
            answer = client.post("/v1/classify", json=body, headers=headers)
            other = client.post("/v1/classify", json=body, headers=headers | {"Host": "evil.org"})
        assert answer.status_code == 200
        assert "fine" in answer.text
        assert other.status_code == 403
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_accepts_the_unit_of_the_guide(tmp_path):
    unit = tmp_path / "glassformer.service"
    text = re.sub(r"ExecStart=\S+", f"ExecStart={sys.executable}", snippet("ini"))
    unit.write_text(text.replace("User=glassformer", "User=root"))
    found = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (
        found.returncode,
        [line for line in found.stderr.splitlines() if str(unit) in line],
    ) == (
        0,
        [],
    )
