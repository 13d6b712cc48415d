/**
 * A minimal Deno server: reads each request body and returns the same bytes. The argument is a file with `{headers, body}`;
 * without it the body is `ok`. Prints its address.
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
