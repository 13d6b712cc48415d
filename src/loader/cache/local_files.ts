/** Files of this machine against what a bundle was made of: whoever edits one must hear of it, pinned or not. */
import { createHash } from "node:crypto";
import type { GraphFile } from "../types.ts";

/** Resolves to whether the files that are on this machine still have their bytes; those of servers are not asked for. */
export async function areAsOnDisk(files: readonly GraphFile[]): Promise<boolean> {
  const local = files.filter(({ url }) => url.startsWith("file:"));
  const same = await Promise.all(local.map(async ({ url, sha256, bytes }) => {
    try {
      const found = await Deno.readFile(new URL(url));
      return found.length === bytes && createHash("sha256").update(found).digest("hex") === sha256;
    } catch {
      return false; // gone, or not to be read: fetching it says which
    }
  }));
  return same.every((one) => one);
}
