/* tflite_lstm.h - recurrences over time (tflite_lstm.c). */
#ifndef TFLITE_LSTM_H
#define TFLITE_LSTM_H

#include "tflite_hybrid.h"

/* Numbers of inputs, 0 where there are none: for the gates i f c o weights of x, of the state, of
 * the cell (peephole), biases, scales of a norm; a projection, its bias; state and cell. */
typedef struct {
    int x, recurrent, peephole, bias, norm;
    int projection, projection_bias, state, cell;
    double cell_clip, projection_clip; /* 0: none */
    int64_t function;
    bool both_sides; /* of bytes */
    bool backward;   /* from the last step to the first */
} TfliteLstm;

/** x [T, B, I] -> [T, B, O] */
ingot_tensor *tfl_lstm(TfliteNode *, ingot_tensor *x, const TfliteLstm *);
/** The same of integers that stand for real numbers (tflite_quant_lstm.c). */
ingot_tensor *tfl_quant_lstm(TfliteNode *, ingot_tensor *x, const TfliteLstm *);
/** One step: sums are the products of x at it, by gate; NULL: there is no such gate. h and cell
 * become the next ones. The scale of an integer cell is 2^log. */
typedef void TfliteLstmStep(TfliteNode *, const TfliteLstm *, ingot_tensor **sums, ingot_tensor **h,
                            ingot_tensor **cell, int log);
/** All steps of x [T, ..], whose products with its weights are sums [T, ..] by gate, from the
 * states of the operator on, which become what the last one leaves: the outputs [T, ..]. */
ingot_tensor *tfl_lstm_steps(TfliteNode *, ingot_tensor *x, const TfliteLstm *, ingot_tensor **sums,
                             TfliteLstmStep *, int log);
/** x [.., I] by input w [O, I], which may be integers with a scale. */
ingot_tensor *tfl_linear(TfliteNode *, ingot_tensor *x, int w, bool both_sides);
bool tfl_has_any(TfliteNode *, int from, int to);
bool tfl_has_all(TfliteNode *, int from, int to);

#endif
