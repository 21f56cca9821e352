// What Cucumber's own packages make of messages: `node cucumber.mjs FOLDER <messages.ndjson >page.html`, where
// FOLDER/node_modules has @cucumber/html-formatter, @cucumber/messages and ajv. Exit code 1 if an envelope breaks the schema.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const require = createRequire(`${folder}/`);
const formatter = pathToFileURL(require.resolve("@cucumber/html-formatter"));
const { CucumberHtmlStream } = await import(formatter);
const { default: Ajv } = require("ajv/dist/2020");

const schema = readFileSync(`${folder}/node_modules/@cucumber/messages/messages.schema.json`);
const isValid = new Ajv({ strict: false }).compile(JSON.parse(schema));
const page = new CucumberHtmlStream();
page.pipe(process.stdout);
const lines = (await text(process.stdin)).split("\n").filter(Boolean);
for (const [number, line] of lines.entries()) {
  const envelope = JSON.parse(line);
  if (!isValid(envelope)) {
    console.error(`line ${number + 1}: ${JSON.stringify(isValid.errors)}`);
    process.exitCode = 1;
  }
  page.write(envelope);
}
page.end();
