/** Reading what came back from a tool, as text. */

const DENIED = "Denied by hook";

/** Returns why a call was denied, or null when it was not (behaviour.md §7.5: `Denied by hook: <reason>`). */
export function denialReason(result: string): string | null {
  if (!result.startsWith(DENIED)) return null;
  const reason = firstParagraph(result).slice(DENIED.length).replace(/^:\s*/, "");
  return reason === "" ? "no reason given" : reason;
}

/** Returns a result without what hooks appended to it, which follows an empty line (behaviour.md §7.6). */
export function firstParagraph(result: string): string {
  return result.split("\n\n", 1)[0]?.trim() ?? "";
}
