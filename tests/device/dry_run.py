#!/usr/bin/env python3
"""device.py and bars.py without a device: packs, runs what was packed from another folder, and looks at the JSON.

    dry_run.py --ingot build/ingot        status 77, skipped: no Python with onnx
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def call(*command, cwd=None):
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, cwd=cwd)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ingot", required=True)
    ingot = pathlib.Path(parser.parse_args().ingot).resolve()
    faults = []

    def want(good, what):
        if not good:
            faults.append(what)

    with tempfile.TemporaryDirectory() as work:
        done = call(HERE / "device.py", "pack", f"{work}/here", "--ingot", ingot, "--products", "64")
        if done.returncode == 77:
            print(done.stdout, end="")
            return 77
        want(done.returncode == 0, f"pack: {done.stdout}{done.stderr}")
        there = pathlib.Path(work, "there")
        pathlib.Path(work, "here").rename(there)
        want(not list(there.rglob("weights.bin")), "weights travel")
        done = call("device.py", "run", "--out", "result.json", "--targets", "c:native,cuda,nonsense", "--seconds", "0.01", "--filter", "resnet", cwd=there)
        want(done.returncode == 1, f"run: status {done.returncode}, with a target that there is not: {done.stdout}{done.stderr}")
        found = json.loads((there / "result.json").read_text())
        want(found["machine"]["cores"] > 0, "no machine is told")
        row = found["models"]["resnet"]
        want(row["c:native"].get("verify") == "ok" and row["c:native"].get("median_ms", 0) > 0, f"c:native: {row['c:native']}")
        want(row["c:native"].get("kernels"), "the kernels are not told")
        if not found["machine"]["gpus"]:
            want(row["cuda"] == {"verify": "skipped: no NVIDIA GPU"}, f"cuda: {row['cuda']}")
        want("status 2" in row["nonsense"]["verify"], f"nonsense: {row['nonsense']}")
        call("device.py", "run", "--out", "products.json", "--targets", "c:native,c:native+bf16", "--seconds", "0.01", "--filter", "product_64_f32", cwd=there)
        row = json.loads((there / "products.json").read_text())["models"].get("product_64_f32", {})
        want(all(row.get(t, {}).get("verify") == "ok" and row[t].get("median_ms", 0) > 0 for t in ("c:native", "c:native+bf16")), f"product: {row}")
        call("device.py", "run", "--limit", "0", cwd=there)
        found = json.loads((there / "result.json").read_text())
        want(found["models"]["qdq"]["c:native"]["verify"] == "skipped: out of time", "a run without time")
        done = call(HERE / "bars.py", "pack", f"{work}/bars", "--ingot", ingot, "--small")
        want(done.returncode == 0, f"pack of bars: {done.stdout}{done.stderr}")
        done = call("bars.py", "run", "--out", "bars.json", "--work", f"{work}/bars/work", "--target", "c:native", "--steps", "attention,launch,vector", cwd=f"{work}/bars")
        found = json.loads(pathlib.Path(work, "bars", "bars.json").read_text()) if done.returncode == 0 else {}
        want(found.get("launch", {}).get("us_a_kernel", 0) > 0 and found.get("vector", {}).get("error", 1) < 1e-2, f"bars: {done.stdout}{done.stderr}")
        done = call(HERE / "device.py", "pack", f"{work}/much", "--ingot", ingot, "--most", "0")
        want(done.returncode == 1 and "more than 0 MiB" in done.stderr, "a size that is too much")
    print("\n".join(faults) or "ok: packed, run elsewhere, told")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
