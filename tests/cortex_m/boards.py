"""The boards of QEMU that programs of the tests run on, and what their mains have in common."""

import pathlib

BOARD = pathlib.Path(__file__).resolve().parents[2] / "examples" / "cortex_m"
BOARDS = {  # flags of the compiler, machine of QEMU
    "cortex-m0+": ("-mthumb -mcpu=cortex-m0plus -mfloat-abi=soft", "mps2-an385"),
    "cortex-m3": ("-mthumb -mcpu=cortex-m3 -mfloat-abi=soft", "mps2-an385"),
    "cortex-m4": ("-mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard", "mps2-an386"),
    "cortex-m55": (
        "-mthumb -mcpu=cortex-m55 -mfloat-abi=hard -Wl,--defsym=board_bytes=512K",
        "mps3-an547",
    ),
}
MAIN = """
#include "board.h"
#include "model.h"
static model_ctx ctx;
static unsigned char arena[MODEL_ARENA_BYTES(1)] __attribute__((aligned(64)));
int main(void)
{
    const model_config config = {
        .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    if (model_init(&ctx, &config) != IGRT_OK)
        return 1;
%s    return 0;
}
"""


def main_of(statements):
    """A main that runs them on a model that is ready."""
    return MAIN % statements


def sources_of(bundle):
    """Files of a bundle that need no operating system."""
    left_out = ("main.c", "driver.c", "igrt_pool.c")
    return [p for p in bundle.glob("*.c") if p.name not in left_out]
