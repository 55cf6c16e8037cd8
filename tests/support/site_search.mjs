// The pages that the search of the built site gives, best first, by its own worker: node site_search.mjs SITE < QUERIES
import fs from "node:fs"
import path from "node:path"
import vm from "node:vm"

const site = process.argv[2]
const queries = JSON.parse(fs.readFileSync(0, "utf-8"))
const workers = path.join(site, "assets/javascripts/workers")
const script = fs.readdirSync(workers).find(name => /^search\..*\.min\.js$/.test(name))
const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf-8"))
const waiting = []
const listeners = []
const worker = {
  addEventListener: (type, listener) => { if (type === "message") listeners.push(listener) },
  postMessage: message => waiting.shift()(message),
  console, setTimeout,
}
worker.self = worker
vm.runInNewContext(fs.readFileSync(path.join(workers, script), "utf-8"), worker)
const ask = message => new Promise(done => {
  waiting.push(done)
  listeners.forEach(listener => listener({ data: message }))
})
await ask({ type: 0, data: { ...index, options: { suggest: true } } })
const pages = {}
for (const query of queries) {
  const { data } = await ask({ type: 2, data: query })
  pages[query] = [...new Set(data.items.map(group => group[0].location.split("#")[0]))]
}
console.log(JSON.stringify(pages))
