"""What narrow.py compares with: losses of the steps that step_time --draws wrote, by PyTorch in f32 and by autocast
to bf16, a line each, on the GPU if there is one.

    narrow_torch.py NAME sgd|adamw FOLDER STEPS
"""

import pathlib
import sys

sys.path[0] = str(pathlib.Path(__file__).resolve().parent / "..")  # cuda.py is not the package
import numpy as np
import torch
import torch.nn.functional as F

sys.path[0] = str(pathlib.Path(__file__).resolve().parent)
import torch_steps
from networks import SIZES


def losses(name, optimizer, folder, steps, device, narrow):
    words = SIZES[name][3]
    x = np.fromfile(folder / "first", np.int64 if words else np.float32)
    shape = torch_steps.TRANSFORMERS[name][:2] if words else (32, 1, 28, 28)
    x = torch.from_numpy(x.reshape(steps, *shape)).to(device)
    target = torch.from_numpy(np.fromfile(folder / "target", np.int64).reshape(steps, -1)).to(
        device
    )
    weights = [w.to(device).requires_grad_(True) for w in torch_steps.weights_of(folder)]
    how = torch.optim.AdamW if optimizer == "adamw" else torch.optim.SGD
    update, told = how(weights, 1e-3), []
    for i in range(steps):
        update.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=narrow):
            loss = F.cross_entropy(torch_steps.result(name, weights, x[i]).float(), target[i])
        loss.backward()
        update.step()
        told.append(loss.detach())
    return torch.stack(told).tolist()


def main():
    name, optimizer, folder, steps = sys.argv[1:5]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for narrow in (False, True):
        print(
            *losses(name, optimizer, pathlib.Path(folder), int(steps), device, narrow), flush=True
        )


if __name__ == "__main__":
    main()
