# A C program that reads digits: README.md, "Try it", and the program it names.
set -eu
ingot compile examples/digits/digits.onnx -o out --name digits
make -s -C out
cc -std=c99 -O2 -Iout -o show examples/digits/show.c out/libdigits.a -lm
./show examples/digits/samples.txt
