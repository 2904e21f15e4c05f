// Records from the microphone into a WAV file, without a codec or a server.

import { wavOf } from "./wav.js";

const BLOCK = 4096; // samples, where there is no worklet

export const canRecord = Boolean(navigator.mediaDevices?.getUserMedia);

// Starts to record; `onlevel(seconds, loudness)` is called as it goes on. Returns { stop, cancel }.
export async function record(onlevel) {
  const media = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
  const context = new AudioContext(),
    source = context.createMediaStreamSource(media),
    blocks = [];
  let samples = 0;
  const take = (block) => {
    blocks.push(block);
    samples += block.length;
    onlevel(samples / context.sampleRate, Math.max(...block.map(Math.abs)));
  };
  const node = await listener(context, take);
  source.connect(node);
  node.connect(context.destination); // or it would not run; it plays nothing
  await context.resume();
  const cancel = () => {
    media.getTracks().forEach((track) => track.stop());
    source.disconnect();
    node.disconnect();
    return context.close();
  };
  const stop = async () => {
    const rate = context.sampleRate;
    await cancel();
    return wavOf(blocks, rate);
  };
  return { stop, cancel };
}

async function listener(context, take) {
  if (context.audioWorklet) {
    await context.audioWorklet.addModule(new URL("recorder-worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "recorder");
    node.port.onmessage = ({ data }) => take(data);
    return node;
  }
  const node = context.createScriptProcessor(BLOCK, 1, 1);
  node.onaudioprocess = ({ inputBuffer }) => take(inputBuffer.getChannelData(0).slice());
  return node;
}
