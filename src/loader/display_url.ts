/** Formats URLs for messages: without queries, which may contain signatures, and without folders of this machine. */
import { mediaTypeOf } from "./fetch/media_type.ts";

/** Returns a URL in display form. A local file is relative to `base_url`, or only its name. */
export function displayUrl(text: string, base_url?: string): string {
  if (text.startsWith("data:")) return `data:${mediaTypeOf(text).slice(0, 40)},…`;
  if (!URL.canParse(text)) return text.slice(0, 200);
  const url = new URL(text);
  if (url.protocol === "file:") return displayFile(url, base_url);
  return `${url.origin}${url.pathname}${url.search === "" ? "" : "?…"}`.slice(0, 500);
}

function displayFile(url: URL, base_url: string | undefined): string {
  const path = decode(url.pathname);
  if (base_url?.startsWith("file:")) {
    const base = decode(new URL(".", base_url).pathname);
    if (path.startsWith(base)) return `./${path.slice(base.length)}`;
  }
  return `…/${path.slice(path.lastIndexOf("/") + 1)}`;
}

function decode(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname; // a lone "%"
  }
}
