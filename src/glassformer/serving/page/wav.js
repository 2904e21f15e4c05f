// WAV files of 16-bit mono sound: made from samples, and with stretches of it silenced.

const HEADER = 44; // bytes

export function wavOf(blocks, rate) {
  const length = blocks.reduce((sum, block) => sum + block.length, 0),
    view = new DataView(new ArrayBuffer(HEADER + 2 * length));
  const text = (at, letters) =>
    [...letters].forEach((letter, n) => view.setUint8(at + n, letter.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, HEADER - 8 + 2 * length, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // one channel
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 2 * length, true);
  let at = HEADER;
  for (const block of blocks)
    for (const level of block) {
      view.setInt16(at, Math.max(-1, Math.min(1, level)) * 32767, true);
      at += 2;
    }
  return new Blob([view], { type: "audio/wav" });
}

const SLOWEST = 8000, // samples a second of a file that Chromium plays
  PLAYED = 16000;

// A file that can be played: of a WAV file of 16-bit samples at a lower rate, a copy at a higher one.
export async function playable(file) {
  const view = new DataView(await file.slice(0, 1 << 26).arrayBuffer());
  const found = view.byteLength > HEADER && parsed(view);
  if (!found || found.rate >= SLOWEST) return file;
  const { channels, rate, start, end } = found,
    length = Math.floor((end - start) / (2 * channels)),
    at = (place) => view.getInt16(start + 2 * channels * Math.min(place, length - 1), true) / 32768;
  const samples = Float32Array.from({ length: Math.floor((length * PLAYED) / rate) }, (_, n) => {
    const place = (n * rate) / PLAYED,
      before = Math.floor(place);
    return at(before) + (place - before) * (at(before + 1) - at(before));
  });
  return length ? wavOf([samples], PLAYED) : file;
}

// Where the samples of a WAV file are, and at what rate; nothing for other files.
function parsed(view) {
  const name = (at) => String.fromCharCode(...[0, 1, 2, 3].map((n) => view.getUint8(at + n)));
  if (name(0) !== "RIFF" || name(8) !== "WAVE") return null;
  let found = null;
  for (let at = 12; at + 8 <= view.byteLength; ) {
    const size = view.getUint32(at + 4, true),
      start = at + 8;
    if (name(at) === "fmt " && view.getUint16(start, true) === 1 && view.getUint16(start + 14, true) === 16)
      found = { channels: view.getUint16(start + 2, true), rate: view.getUint32(start + 4, true) };
    if (name(at) === "data") return found && { ...found, start, end: Math.min(start + size, view.byteLength) };
    at = start + size + (size % 2);
  }
  return null;
}

// The file of an explanation (base64) with silence in these stretches of seconds.
export function silenced(base64, stretches) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)),
    rate = new DataView(bytes.buffer).getUint32(24, true);
  for (const [start, end] of stretches)
    bytes.fill(0, HEADER + 2 * Math.round(start * rate), HEADER + 2 * Math.round(end * rate));
  return new Blob([bytes], { type: "audio/wav" });
}
