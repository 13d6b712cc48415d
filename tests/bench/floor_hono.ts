/**
 * A minimal Hono server: parses each body as JSON and returns the same JSON, as an application would. The
 * argument is a file with the JSON. Prints its address.
 */
import { Hono } from "hono";
import { serveAnnounced } from "./announced_server.ts";

const [path = ""] = Deno.args;
const answer = JSON.parse(Deno.readTextFileSync(path)) as Record<string, unknown>;

const app = new Hono();
app.post("/v1/runs", async (context) => {
  const { prompt } = await context.req.json() as { prompt?: unknown };
  if (typeof prompt !== "string") return context.json({ error: "prompt must be text" }, 400);
  return context.json(answer);
});

serveAnnounced((request) => app.fetch(request));
