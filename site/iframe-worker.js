// Search runs in a Worker, which browsers refuse to start from file://. There, a hidden frame
// takes its place: the script runs in it, and messages go back and forth in the same way.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {  // the theme looks for the first
    constructor(url) {
      super();
      this.onmessage = this.onerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      this.ready = new Promise((loaded) => { inside.parentIsReady = loaded; });
      inside.answer = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      inside.document.open();
      inside.document.write(`<!doctype html><body><script>
        const answer = window.answer, loaded = window.parentIsReady;
        window.postMessage = (data) => setTimeout(answer, 0, data);
        window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() =>
          new Promise((done, fail) => {
            const script = document.createElement("script");
            Object.assign(script, { src: url, onload: done, onerror: fail });
            document.body.appendChild(script);
          })), Promise.resolve());
        </script><script src="${url}"></script><script>loaded()</script>`);
      inside.document.close();
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
