/** A run as text that others can start: with `curl`, and with `preamp/client`. No key is ever in it. */
import type { RunRequest } from "preamp/client";

/** What a copied text does. */
interface CopiedRun {
  /** Base URL of the server. */
  readonly url: string;
  readonly body: RunRequest;
  /** Whether the server asks for a key, which the text then takes from `PREAMP_API_KEY`. */
  readonly needs_key: boolean;
}

/** Returns a command of a shell that runs the request and prints its log. */
export function curlText({ url, body, needs_key }: CopiedRun): string {
  const lines = [
    `curl -N ${quoted(`${trimmed(url)}/v1/runs`)}`,
    ...(needs_key ? [`-H "Authorization: Bearer $PREAMP_API_KEY"`] : []),
    "-H 'Accept: text/event-stream'",
    "-H 'Content-Type: application/json'",
    "--data-binary @- <<'END'", // JSON has no line that reads END
  ];
  return `${lines.join(" \\\n  ")}\n${JSON.stringify(body, null, 2)}\nEND\n`;
}

/** Returns a program for Deno and Node that runs the request and prints the answer. */
export function typescriptText({ url, body, needs_key }: CopiedRun): string {
  const fields = Object.entries(body).map(([name, value]) =>
    `  ${name}: ${typeof value === "string" ? literal(value) : JSON.stringify(value)},\n`
  );
  const key = needs_key ? ", key: () => process.env.PREAMP_API_KEY" : "";
  return `${
    needs_key ? 'import process from "node:process";\n' : ""
  }import { PreampClient } from "preamp/client"; // see ${trimmed(url)}/docs/library#talk-to-a-server

const client = new PreampClient({ url: ${JSON.stringify(trimmed(url))}${key} });
const run = await client.run({
${fields.join("")}});
console.log(run.status, run.output_text);
`;
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, "");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns a text as a literal: with several lines, as a template that reads like the text. */
function literal(text: string): string {
  if (!text.includes("\n")) return JSON.stringify(text);
  return `\`${text.replace(/[\\`]|\$(?=\{)/g, "\\$&").replaceAll("\r", "\\r")}\``;
}
