// A browser that reads pages from a folder starts no workers. There, a hidden frame does the work
// of the one that searches: same messages, same scripts.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame;
      const inside = frame.contentWindow;
      const send = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const put = (source) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script");
          script.src = source;
          script.onload = resolve;
          script.onerror = () => reject(new Error(`cannot load ${source}`));
          inside.document.body.append(script);
        });
      inside.postMessage = send;
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => put(source)), Promise.resolve());
      this.ready = put(new URL(url, location.href).href);
    }
    postMessage(data) {
      this.ready.then(() => {
        const { contentWindow } = this.frame;
        contentWindow.dispatchEvent(new contentWindow.MessageEvent("message", { data }));
      });
    }
    terminate() {
      this.frame.remove();
    }
  };
}
