/**
 * The least a server on Deno can be: reads each body, answers the same bytes. With a file as its argument these are its
 * `{headers, body}`, else two bytes of text. Tells its address on stdout.
 */
interface Answer {
  headers: Record<string, string>;
  body: string;
}

const [path] = Deno.args;
const answer: Answer = path === undefined
  ? { headers: { "content-type": "text/plain" }, body: "ok" }
  : JSON.parse(Deno.readTextFileSync(path));
const body = new TextEncoder().encode(answer.body);

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => void Deno.stdout.writeSync(new TextEncoder().encode(`http://127.0.0.1:${port}\n`)),
}, async (request) => {
  await request.arrayBuffer();
  return new Response(body, { headers: answer.headers });
});
