"""What is tried of a tree that a recipe has changed."""

import shutil
import subprocess

import numpy as np
from onnx import helper, numpy_helper
from run import STRICT, Wrong, call, compilers, make  # noqa: F401: of tests/bundle


class Tried:
    """A built copy of the tree."""

    def __init__(self, work, made):
        self.tree, self.made, self.ingot = work / "tree", made, made / "ingot"
        self.work = work / "tried"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def tests(self, *names):
        for name in names:
            call(self.made / "tests" / name, cwd=self.tree)

    def model(self, name, nodes, inputs, outputs, weights=(), domain="", version=17):
        """inputs, outputs: names to arrays; what it is given and gives lies beside it."""
        tensors = [
            [
                helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                for k, v in some.items()
            ]
            for some in (inputs, outputs)
        ]
        graph = helper.make_graph(
            [helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes],
            "g",
            *tensors,
            [numpy_helper.from_array(w, k) for k, w in weights],
        )
        opsets = [helper.make_opsetid("", 17)] + (
            [helper.make_opsetid(domain, version)] if domain else []
        )
        data = self.work / f"{name}_data"
        data.mkdir()
        for kind, some in (("input", inputs), ("output", outputs)):
            for i, v in enumerate(some.values()):
                np.save(data / f"{kind}_{i}.npy", v)
        path = self.work / f"{name}.onnx"
        path.write_bytes(
            helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        )
        return path, data

    def compile(self, model, target, *flags):
        out = self.work / f"{model.stem}_{target.replace(':', '_')}"
        shutil.rmtree(out, ignore_errors=True)
        call(self.ingot, "compile", model, "-o", out, "--target", target, "-q", *flags)
        return out

    def text(self, bundle, suffix=".c"):
        """Of its kernels."""
        return "".join(f.read_text() for f in sorted(bundle.glob(f"model_k*{suffix}")))

    def run(self, model, data, target, cc, tolerance=1e-6, *flags):
        """Built by that compiler without a warning, it gives what is expected. False: there is no such device."""
        bundle = self.compile(model, target, *flags)
        make(bundle, cc, STRICT)
        out = self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        done = subprocess.run([bundle / "model", data, out], capture_output=True, text=True)
        if "status 16" in done.stdout + done.stderr:
            return False
        if done.returncode:
            raise Wrong(f"{bundle}: status {done.returncode}\n{done.stdout}{done.stderr}")
        for want in sorted(data.glob("output_*.npy")):
            a, b = (np.load(f / want.name).astype(np.float64) for f in (out, data))
            if not np.allclose(a, b, rtol=0, atol=tolerance * max(1, abs(b).max())):
                raise Wrong(f"{bundle} by {cc}: off by {abs(a - b).max()}")
        return True

    def verify(self, model, *flags):
        call(self.ingot, "verify", model, "-q", *flags)

    def refused(self, status, words, *command):
        """A command of ingot ends with this status, and says this."""
        done = subprocess.run(
            [self.ingot, *map(str, command)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != status or words not in done.stderr:
            raise Wrong(f"{command}: {done.returncode} {done.stderr!r}, and not {status} {words!r}")

    def audited(self, bundle):
        """No findings; False: this ingot was built without libclang."""
        done = subprocess.run([self.ingot, "audit", bundle], capture_output=True, text=True)
        if "libclang" in done.stderr:
            return False
        if done.returncode:
            raise Wrong(f"audit of {bundle}: {done.stdout[-2000:]}{done.stderr}")
        return True
