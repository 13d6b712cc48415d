/**
 * As much of curl as the server's greeting uses, for machines without it: `-s`, `-N`, `-H`, `-d`,
 * `--json`, `--retry` with `--retry-connrefused`, `--data-binary @file` and a URL. `shell.ts` puts it behind
 * the PATH, so that a real curl goes first.
 */

const headers = new Headers();
let url = "";
let body: string | undefined;
let tries = 1;
const words = [...Deno.args];
for (let word = words.shift(); word !== undefined; word = words.shift()) {
  if (word === "-s" || word === "-N" || word === "--retry-connrefused") continue;
  const value = ["-H", "-d", "--json", "--retry", "--data-binary"].includes(word) ? words.shift() ?? "" : "";
  if (word === "-H") {
    headers.append(value.slice(0, value.indexOf(":")), value.slice(value.indexOf(":") + 1).trim());
  } else if (word === "-d") body = value;
  else if (word === "--retry") tries += Number(value);
  else if (word === "--json") {
    body = value;
    headers.set("content-type", "application/json");
  } else if (word === "--data-binary") {
    body = value.startsWith("@") ? Deno.readTextFileSync(value.slice(1)) : value;
  } else if (word.startsWith("-")) throw new Error(`This replacement of curl does not support ${word}`);
  else url = word;
}
const response = await answer();
await response.body?.pipeTo(Deno.stdout.writable);

/** Sends the request until the server accepts its connection. */
async function answer(): Promise<Response> {
  for (let left = tries;; left--) {
    try {
      return await fetch(url, body === undefined ? { headers } : { method: "POST", headers, body });
    } catch (error) {
      if (left <= 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}
