/**
 * The floor of a guest in a child process: passes lines from stdin to a worker and from the worker to stdout.
 */
const worker = new Worker(new URL("./bare_worker.ts", import.meta.url), { type: "module" });
const encoder = new TextEncoder();
worker.onmessage = ({ data }: MessageEvent<string>) => {
  const bytes = encoder.encode(`${data}\n`);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
};

const decoder = new TextDecoder();
const buffer = new Uint8Array(65_536);
let rest = "";
for (let count = await Deno.stdin.read(buffer); count !== null; count = await Deno.stdin.read(buffer)) {
  const lines = (rest + decoder.decode(buffer.subarray(0, count), { stream: true })).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) worker.postMessage(line);
}
Deno.exit(0);
