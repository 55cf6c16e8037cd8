// Browsers start no worker for a page that is opened from a folder (file:), so search runs in a hidden frame there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.element = document.body.appendChild(document.createElement("iframe"))
      this.element.hidden = true
      this.frame = this.element.contentWindow
      this.frame.postMessage = message => this.answer(message)
      const script = this.frame.document.createElement("script")
      script.src = url
      this.ready = new Promise((done, failed) => {
        script.onload = done
        script.onerror = failed
      })
      this.frame.document.body.append(script)
    }

    postMessage(message) {
      this.ready.then(() => this.frame.dispatchEvent(new this.frame.MessageEvent("message", { data: message })))
    }

    answer(message) {
      this.dispatchEvent(new MessageEvent("message", { data: message }))
    }

    terminate() {
      this.element.remove()
    }
  }
}
