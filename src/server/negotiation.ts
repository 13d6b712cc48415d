/** Parses the headers Content-Type, Accept, Accept-Encoding (RFC 9110) and Prefer (RFC 7240). */

/** A parsed Content-Type header. */
export interface MediaType {
  /** Lower case, such as `application/json`; empty without the header. */
  type: string;
  /** Lower case; null without the parameter. */
  charset: string | null;
  /** Separator of the parts of a form; null without the parameter. */
  boundary: string | null;
}

/** Parses a Content-Type header. */
export function parseMediaType(header: string | null): MediaType {
  if (header === null) return { type: "", charset: null, boundary: null };
  if (header === "application/json") return { type: header, charset: null, boundary: null };
  const [type = "", ...parameters] = splitUnquoted(header, ";");
  const values = new Map(parameters.map(parseParameter));
  return {
    type: type.trim().toLowerCase(),
    charset: values.get("charset")?.toLowerCase() ?? null,
    boundary: values.get("boundary") ?? null,
  };
}

/**
 * Returns the offered type with the highest `q` in an Accept header; of equal ones, the first in the header.
 * The most specific range that matches a type decides its `q`; 0 refuses it. Returns the first offered type
 * without a header, or if the header accepts none of them.
 */
export function preferredType<Type extends string>(
  header: string | null,
  offered: readonly [Type, ...Type[]],
): Type {
  if (header === null || header === "*/*" || header === offered[0]) return offered[0];
  const ranges = splitUnquoted(header, ",").map((item, position) => {
    const [range = "", ...parameters] = splitUnquoted(item, ";");
    return { range: range.trim().toLowerCase(), quality: qualityOf(parameters), position };
  }).sort((a, b) => stars(a.range) - stars(b.range));
  const accepted = offered.flatMap((type) => {
    const found = ranges.find(({ range, quality }) => quality !== null && matches(range, type));
    return found?.quality ? [{ type, position: found.position, quality: found.quality }] : [];
  }).sort((a, b) => b.quality - a.quality || a.position - b.position);
  return accepted[0]?.type ?? offered[0];
}

/**
 * Returns true if an Accept-Encoding header accepts a coding (RFC 9110 §12.5.3); false without the header.
 */
export function acceptsEncoding(header: string | null, coding: string): boolean {
  if (header === null) return false;
  let any = false;
  for (const item of header.split(",")) {
    const [name = "", ...parameters] = item.split(";");
    const accepted = (qualityOf(parameters) ?? 0) > 0;
    if (name.trim().toLowerCase() === coding) return accepted;
    if (name.trim() === "*") any = accepted;
  }
  return any;
}

/** The preferences of a Prefer header that the server knows. */
export interface Preferences {
  /** Answer 202 at once. */
  respond_async: boolean;
  /** `true`: wait until the end; a number: wait at most that many seconds. */
  wait: boolean | number;
  /** Answer a run that ended and did not complete with the status of a failure. */
  status: boolean;
}

/** Parses a Prefer header; unknown preferences are ignored (RFC 7240 §2). */
export function parsePrefer(header: string | null): Preferences {
  const preferences: Preferences = { respond_async: false, wait: false, status: false };
  if (header === null) return preferences;
  for (const item of splitUnquoted(header, ",")) {
    const [name, value] = parseParameter(splitUnquoted(item, ";")[0] ?? "");
    if (name === "respond-async") preferences.respond_async = true;
    if (name === "status") preferences.status = true;
    if (name !== "wait" || preferences.wait !== false) continue; // the first of equal preferences counts
    const seconds = value === "" ? NaN : Number(value);
    preferences.wait = Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : true;
  }
  return preferences;
}

function matches(range: string, offer: string): boolean {
  if (range === offer || range === "*/*") return true;
  return range.endsWith("/*") && offer.startsWith(range.slice(0, -1));
}

/** Number of wildcards of a media range: 0 for the most specific ones. */
function stars(range: string): number {
  return range.split("*").length - 1;
}

/** Returns the `q` of an item, from 0 to 1; null when it is malformed. */
function qualityOf(parameters: string[]): number | null {
  for (const parameter of parameters) {
    const [name, value] = parseParameter(parameter);
    if (name !== "q") continue;
    const quality = value === "" ? NaN : Number(value);
    return quality >= 0 && quality <= 1 ? quality : null;
  }
  return 1;
}

/** Parses `name`, `name=value` or `name="value"`; the value is empty by default. */
function parseParameter(text: string): [name: string, value: string] {
  const equals = text.indexOf("=");
  if (equals === -1) return [text.trim().toLowerCase(), ""];
  const value = text.slice(equals + 1).trim();
  const unquoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"')
    ? value.slice(1, -1)
    : value;
  return [text.slice(0, equals).trim().toLowerCase(), unquoted];
}

/** Splits text at a separator outside of quoted strings (RFC 9110 §5.6.4). */
function splitUnquoted(text: string, separator: "," | ";"): string[] {
  if (!text.includes('"')) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (quoted && character === "\\") index++;
    else if (character === '"') quoted = !quoted;
    else if (character === separator && !quoted) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...parts, text.slice(start)];
}
