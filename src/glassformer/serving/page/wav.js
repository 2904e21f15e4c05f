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

// The file of an explanation (base64) with silence in these stretches of seconds.
export function silenced(base64, stretches) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)),
    rate = new DataView(bytes.buffer).getUint32(24, true);
  for (const [start, end] of stretches)
    bytes.fill(0, HEADER + 2 * Math.round(start * rate), HEADER + 2 * Math.round(end * rate));
  return new Blob([bytes], { type: "audio/wav" });
}
