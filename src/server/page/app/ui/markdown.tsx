/**
 * Markdown as elements, made from tokens and never from HTML text. A model's HTML is shown as text, its images
 * as links: an image that loads by itself could carry data to another server.
 */
import type { ComponentChildren } from "preact";
import { lexer, type Token, type Tokens } from "marked";
import { TextBlock, visible } from "./text.tsx";

/** Characters up to which a text is read as Markdown; a longer one is plain text. */
const MAX_CHARS = 200_000;

/** Shows text as Markdown. */
export function Markdown({ text }: { text: string }) {
  if (text.length > MAX_CHARS) return <TextBlock text={text} label="Answer" />;
  return <div class="md" dir="auto">{blocks(lexer(text))}</div>;
}

function blocks(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, index) => <Block token={token} key={index} />);
}

function Block({ token }: { token: Token }) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return <h3>{inline(token.tokens)}</h3>; // one level: a model may begin with any
    case "code":
      return <pre><code>{visible(token.text)}</code></pre>;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "list": {
      const items = (token as Tokens.List).items.map((item, index) => (
        <li key={index}>
          {item.task && <span>{item.checked ? "☑ " : "☐ "}</span>}
          {blocks(item.tokens.filter(({ type }) => type !== "checkbox"))}
        </li>
      ));
      return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "hr":
      return <hr />;
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "text":
      return <>{token.tokens ? inline(token.tokens) : visible(token.text)}</>;
    default:
      return <p>{visible(token.raw)}</p>;
  }
}

function Table({ table }: { table: Tokens.Table }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: "th" | "td") =>
    row.map((cell, index) => <Cell key={index}>{inline(cell.tokens)}</Cell>);
  return (
    <table>
      <thead>
        <tr>{cells(table.header, "th")}</tr>
      </thead>
      <tbody>{table.rows.map((row, index) => <tr key={index}>{cells(row, "td")}</tr>)}</tbody>
    </table>
  );
}

function inline(tokens: readonly Token[] = []): ComponentChildren {
  return tokens.map((token, index) => <Inline token={token} key={index} />);
}

function Inline({ token }: { token: Token }) {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <del>{inline(token.tokens)}</del>;
    case "codespan":
      return <code>{visible(token.text)}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link href={token.href}>{inline(token.tokens)}</Link>;
    case "image":
      return <Link href={token.href}>{visible(`[image: ${token.text || token.href}]`)}</Link>;
    case "text":
      return <>{token.tokens ? inline(token.tokens) : visible(token.text)}</>;
    case "escape":
      return <>{visible(token.text)}</>;
    default:
      return <>{visible(token.raw)}</>;
  }
}

/** A link that a model wrote: only to the web or to a mail address, and its target is shown. */
function Link({ href, children }: { href: string; children: ComponentChildren }) {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return <span>{children} ({visible(href)})</span>;
  return <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>;
}
