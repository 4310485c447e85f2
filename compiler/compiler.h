/* compiler.h - everything that the folders compiler/, codegen/ and targets/ share, in the order in which it is built up. */
#ifndef COMPILER_H
#define COMPILER_H

#include "base.h"
#include "ir.h"
#include "kernels.h"
#include "plan.h"
#include "target.h"

#endif
