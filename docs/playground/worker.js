// Python for the playground: starts it, and runs play.py in it for page.js.
importScripts("pyodide/pyodide.js")

const packages = "/lib/python3.12/site-packages"
const fetched = async name => {
  const answer = await fetch(name)
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`)
  return answer
}

async function start() {
  const python = await loadPyodide({ indexURL: new URL("pyodide/", location.href).href, stderr: () => {} })
  postMessage(["status", "NumPy and Arrow are loaded …"])
  await python.loadPackage("pyarrow", { messageCallback: () => {} })
  postMessage(["status", "splitjoin is loaded …"])
  python.unpackArchive(await (await fetched("splitjoin.zip")).arrayBuffer(), "zip", { extractDir: packages })
  python.runPython(await (await fetched("play.py")).text())
  return python.globals.get("run")
}

const started = start()
started.catch(() => {})  // each run tells

onmessage = async ({ data: [r, s, on, cores] }) => {
  try {
    const run = await started
    postMessage(["status", "The join runs …"])
    for (const part of run(r, s, on, cores)) postMessage(part.toJs())
    postMessage(["status", ""])
  } catch (error) {
    postMessage(["error", error.message.trim().split("\n").pop()])
  }
}
