/* compiler.h - everything that codegen/, targets/ and the tools see of the compiler, in the order
 * in which it is built up. */
#ifndef COMPILER_H
#define COMPILER_H

#include "base.h"
#include "cost.h"
#include "eval.h"
#include "graph_rewrite.h"
#include "ir.h"
#include "kernels.h"
#include "optimise.h"
#include "plan.h"
#include "plan_schedule.h"
#include "target.h"

#endif
