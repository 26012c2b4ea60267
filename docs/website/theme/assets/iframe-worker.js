// Search in a page that was opened as a file. Browsers start no worker there, so its script runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      const page = inside.document
      page.open()
      page.write("<!doctype html><body></body>")
      page.close()
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = page.createElement("script")
      this.started = new Promise(resolve => script.addEventListener("load", resolve))
      script.src = String(address)
      page.body.append(script)
    }

    postMessage(data) {
      this.started.then(() => {
        const inside = this.frame.contentWindow
        inside.dispatchEvent(new inside.MessageEvent("message", { data }))
      })
    }

    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
