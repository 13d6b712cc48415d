/** The definitions of a server's tools: their hashes, and names for models. */
import type { Tool as Definition } from "@modelcontextprotocol/client";
import { canonicalJson, isObject, type PinnedTool, TOOL_NAME } from "preamp/base";

/** Returns what a lock keeps of a server's tools: all that a model or a rule sees of them is hashed. */
export async function pinsOf(definitions: readonly Definition[]): Promise<Record<string, PinnedTool>> {
  const pins = definitions.map(
    async ({ name, title, description, inputSchema, outputSchema, annotations }) => {
      const text = canonicalJson({ name, title, description, inputSchema, outputSchema, annotations });
      const { properties } = inputSchema;
      const parameters = isObject(properties) ? Object.keys(properties).sort() : [];
      return [name, { sha256: await sha256(text), parameters }] as const;
    },
  );
  const sorted = (await Promise.all(pins)).toSorted(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
  return Object.fromEntries(sorted);
}

async function sha256(text: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))).toHex();
}

/** Maximum characters of a tool's name that vendors accept, and of the hash in a name that was cut. */
const MAX_NAME = 64;
const HASH_CHARS = 8;

/**
 * Returns a name for each tool that vendors accept: `server__tool`. Where that needs other characters or is
 * too long, the name ends with a part of a hash, so that two tools never have the same.
 */
export async function modelNames(server: string, tools: readonly string[]): Promise<string[]> {
  return await Promise.all(tools.map(async (tool) => {
    const name = `${server}__${tool}`;
    if (TOOL_NAME.test(name)) return name;
    const hash = (await sha256(name)).slice(0, HASH_CHARS);
    return `${name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME - HASH_CHARS - 1)}_${hash}`;
  }));
}
