// SPDX-License-Identifier: BSL-1.0
// Pages that are opened from a folder may not start a worker. There the search's worker runs in a hidden iframe.
// Its name and IFrameWorker's are what MkDocs Material looks for.
if (location.protocol === "file:")
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = []; // messages until the script has been read
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const page = this.frame.contentDocument;
      const worker = this.frame.contentWindow;
      worker.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", {data})));
      const script = page.createElement("script");
      script.src = url;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      };
      page.body.appendChild(script);
    }
    postMessage(data) {
      const message = () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
      if (this.waiting) this.waiting.push(data);
      else setTimeout(message);
    }
    terminate() { this.frame.remove(); }
  };
