// The form of the playground. It sends the tables and the condition to worker.js, and shows the results.
const form = document.getElementById("playground")
const part = name => document.getElementById(`playground-${name}`)
let worker = null

const show = {
  status: text => { part("status").textContent = text },
  error: text => { part("status").textContent = ""; part("error").textContent = text },
  rows: html => { part("rows").innerHTML = html },  // made by splitjoin, which escapes what is in the tables
  plan: html => { part("plan").srcdoc = html },
  circuit: text => { part("circuit").textContent = text },
  waves: html => { part("waves").srcdoc = html },
  verilog: text => { part("verilog").textContent = text },
}

function started() {
  const made = new Worker("playground/worker.js")
  made.onmessage = ({ data: [name, value] }) => {
    show[name](value)
    const section = part(name).closest("section")
    if (section) section.hidden = false
    form.elements.run.disabled = name === "status" && value !== "" || !["status", "error"].includes(name)
  }
  made.onerror = () => {
    worker = null
    form.elements.run.disabled = false
    show.error("Python could not be loaded. This copy of the site was built without it (make playground, then make " +
               "docs), or your browser runs no WebAssembly.")
  }
  return made
}

form.addEventListener("submit", event => {
  event.preventDefault()
  if (location.protocol === "file:") {
    show.error("Browsers run no Python for a page that is opened from a folder: start python -m http.server in the " +
               "site's folder, and open the page there.")
    return
  }
  document.querySelectorAll("section.playground").forEach(section => { section.hidden = true })
  show.error("")
  show.status("Python is loaded: 30 MB, once …")
  form.elements.run.disabled = true
  worker ??= started()
  worker.postMessage([form.elements.r.value, form.elements.s.value, form.elements.on.value,
                      Number(form.elements.cores.value)])
})
