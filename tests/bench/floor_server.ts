/**
 * A minimal Deno server: parses each request body as JSON and returns the same bytes. The argument is a file
 * with `{headers, body}`; without it the body is `ok`. Prints its address.
 */
interface Answer {
  headers: Record<string, string>;
  body: string;
}

const [path] = Deno.args;
const answer: Answer = path === undefined
  ? { headers: { "content-type": "text/plain" }, body: "ok" }
  : JSON.parse(Deno.readTextFileSync(path));

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => void Deno.stdout.writeSync(new TextEncoder().encode(`http://127.0.0.1:${port}\n`)),
}, async (request) => {
  const text = await request.text();
  if (text !== "") JSON.parse(text);
  return new Response(answer.body, { headers: answer.headers });
});
