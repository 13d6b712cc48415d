/** The sections of all pages, which the search of the documentation reads. */
import { PAGES, readPage } from "../../docs/pages.ts";
import type { SearchSection } from "../../docs/search.ts";
import { sectionsOf } from "./markdown.ts";

/** Returns the sections of the pages of `src/docs`, and of the pages of the given modules. */
export async function searchSections(modules: readonly string[]): Promise<SearchSection[]> {
  const sections: SearchSection[] = [];
  for (const page of [...PAGES.map(({ name }) => name), ...modules]) {
    const [title, ...rest] = sectionsOf(await readPage(page) ?? "");
    if (title === undefined) continue;
    for (const { text, anchor, body } of [{ ...title, anchor: "" }, ...rest]) {
      sections.push({ page, title: title.text, heading: text, anchor, text: body });
    }
  }
  return sections;
}
