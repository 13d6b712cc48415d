/**
 * A minimal Deno server: parses each request body as JSON and returns the same bytes. The argument is a file
 * with `{headers, body}`; without it the body is `ok`. Prints its address.
 */
import { serveAnnounced } from "./announced_server.ts";

interface Answer {
  headers: Record<string, string>;
  body: string;
}

const [path] = Deno.args;
const answer: Answer = path === undefined
  ? { headers: { "content-type": "text/plain" }, body: "ok" }
  : JSON.parse(Deno.readTextFileSync(path));

serveAnnounced(async (request) => {
  const text = await request.text();
  if (text !== "") JSON.parse(text);
  return new Response(answer.body, { headers: answer.headers });
});
