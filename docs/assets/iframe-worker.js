// Lets the site's search run where pages are opened as files: browsers start no worker from a file, so this
// one runs the worker's script in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      // Messages wait until the script listens.
      this.ready = new Promise((done) => script.addEventListener("load", done));
      script.src = new URL(url, location.href).href;
      inner.document.body.appendChild(script);
      this.inner = inner;
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
