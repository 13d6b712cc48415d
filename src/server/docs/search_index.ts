/** The sections of all pages as one JSON text, which the search of the documentation reads. */
import { PAGES, readPage } from "../../docs/pages.ts";
import { sectionsOf } from "./markdown.ts";

/**
 * Returns the index of the pages of `src/docs`, and of the pages of the given modules: a list of
 * `SearchSection` of `../page/app/docs/search.ts`, which `deno publish` leaves out.
 */
export async function searchIndex(modules: readonly string[]): Promise<string> {
  const sections: Record<string, string>[] = [];
  for (const page of [...PAGES.map(({ name }) => name), ...modules]) {
    const [title, ...rest] = sectionsOf(await readPage(page) ?? "");
    if (title === undefined) continue;
    for (const { text, anchor, body } of [{ ...title, anchor: "" }, ...rest]) {
      sections.push({ page, title: title.text, heading: text, anchor, text: body });
    }
  }
  return JSON.stringify(sections);
}
