/* float_text.h - a float as a decimal number. */
#ifndef FLOAT_TEXT_H
#define FLOAT_TEXT_H

enum { FLOAT_TEXT = 48 };

/* The shortest of 6 to 9 digits that reads back the same, as %.*g writes it; x is finite. */
void float_text(char text[FLOAT_TEXT], float x);

#endif
