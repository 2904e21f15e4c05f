// Requests to this server. Whatever goes wrong becomes a Refusal, of a kind that the page has words for.

const SLOT = "glassformer-key"; // of the session, which ends with the tab
let key = stored();

function stored() {
  try {
    return sessionStorage.getItem(SLOT) ?? "";
  } catch {
    return "";
  }
}

export function useKey(typed) {
  key = typed;
  try {
    sessionStorage.setItem(SLOT, typed);
  } catch {
    // The browser keeps nothing; the key lasts as long as the page.
  }
}

export class Refusal extends Error {
  // kind: key, busy, late, wrong, failed, gone or cut; detail: the server's own sentence.
  constructor(kind, { detail = "", after = 0 } = {}) {
    super(detail || kind);
    Object.assign(this, { kind, detail, after });
  }
}

function kindOf(status) {
  if (status === 401) return "key";
  if (status === 429 || status === 503) return "busy";
  if (status === 504 || status === 408) return "late";
  return status < 500 ? "wrong" : "failed";
}

async function send(path, body, signal) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const sent = { method: body === undefined ? "GET" : "POST", headers, signal, cache: "no-store" };
  if (body instanceof FormData) sent.body = body;
  else if (body !== undefined) {
    headers["content-type"] = "application/json";
    sent.body = JSON.stringify(body);
  }
  const answer = await fetch(path, sent).catch((error) => {
    throw signal?.aborted ? error : new Refusal("gone");
  });
  if (answer.ok) return answer;
  const values = await answer.json().catch(() => ({}));
  throw new Refusal(kindOf(answer.status), {
    detail: values.error?.message,
    after: Number(answer.headers.get("retry-after")) || 0,
  });
}

// The answer to a request as values; without a body it is a GET.
export async function ask(path, body, signal) {
  const answer = await send(path, body, signal);
  return answer.json().catch((error) => {
    throw signal?.aborted ? error : new Refusal("cut");
  });
}

// The events of a stream as they come; it ends with [DONE], or it was cut.
export async function* stream(path, body, signal) {
  const answer = await send(path, body, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw signal?.aborted ? error : new Refusal("cut");
    });
    if (done) throw new Refusal("cut");
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const values = JSON.parse(data);
      if (values.error) throw new Refusal("failed", { detail: values.error.message });
      yield values;
    }
  }
}
