/** Which program this is. */
import manifest from "../../deno.json" with { type: "json" };

/** Returns what `preamp --version` prints: our version, and the runtime's. */
export function versionText(): string {
  return `preamp ${manifest.version} (deno ${Deno.version.deno}, v8 ${Deno.version.v8}, ${Deno.build.target})`;
}
