# A page that reads digits in the browser: README.md, docs/web.md, docs/wasm.md.
set -eu
command -v clang wasm-ld > /dev/null || { echo "clang for WebAssembly is not installed"; exit 77; }
chromium=$(command -v chromium || command -v google-chrome) || { echo "no browser"; exit 77; }
ingot compile examples/digits/digits.onnx -o out --target c:wasm32-simd128 --package web
make -s -C out web
cat > out/index.html <<'END'
<!doctype html><meta charset="utf-8"><title>digits</title><p id="result">loading</p>
<script type="module">
import {load} from './model.mjs';
const result = document.getElementById('result');
try {
  const m = await load(), image = new Float32Array(64);
  for (let row = 1; row < 7; row++) image[8 * row + 4] = 16;      // a stroke: 1
  const {probabilities} = await m.run({image});
  result.textContent = `read as ${probabilities.indexOf(Math.max(...probabilities))}, by ${m.by}`;
} catch (e) { result.textContent = e; }
</script>
END
python3 -m http.server -d out 8731 > server.txt 2>&1 &
server=$!
trap 'kill $server' EXIT
sleep 1
"$chromium" --headless --no-sandbox --disable-gpu --virtual-time-budget=20000 --dump-dom \
    http://localhost:8731/ > dom.html 2> chromium.txt
grep 'read as 1, by wasm' dom.html
