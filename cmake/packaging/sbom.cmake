# SPDX-License-Identifier: BSL-1.0
# The bill of materials, SPDX 2.3: what this build of the library stands on, with the versions that were found. Its
# moment is SOURCE_DATE_EPOCH, where that is set.
set(sbom_packages)
set(sbom_relationships)

function(holdfast_sbom_add name version licence supplier)
  if(version STREQUAL "")
    set(version NOASSERTION)
  endif()
  string(APPEND sbom_packages ",
    {
      \"name\": \"${name}\",
      \"SPDXID\": \"SPDXRef-${name}\",
      \"versionInfo\": \"${version}\",
      \"supplier\": \"Organization: ${supplier}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"${licence}\",
      \"licenseDeclared\": \"${licence}\",
      \"copyrightText\": \"NOASSERTION\",
      \"externalRefs\": [{
        \"referenceCategory\": \"PACKAGE-MANAGER\",
        \"referenceType\": \"purl\",
        \"referenceLocator\": \"pkg:generic/${name}@${version}\"
      }]
    }")
  string(APPEND sbom_relationships ",
    {
      \"spdxElementId\": \"SPDXRef-holdfast\",
      \"relationshipType\": \"DEPENDS_ON\",
      \"relatedSpdxElement\": \"SPDXRef-${name}\"
    }")
  set(sbom_packages "${sbom_packages}" PARENT_SCOPE)
  set(sbom_relationships "${sbom_relationships}" PARENT_SCOPE)
endfunction()

holdfast_sbom_add(boost "${Boost_VERSION}" BSL-1.0 Boost)
holdfast_sbom_add(hiredis "${hiredis_VERSION}" BSD-3-Clause Redis)
if(HOLDFAST_WITH_TLS)
  holdfast_sbom_add(openssl "${OPENSSL_VERSION}" Apache-2.0 OpenSSL)
endif()
if(HOLDFAST_BUILD_CLI)
  holdfast_sbom_add(cli11 "${CLI11_VERSION}" BSD-3-Clause CLIUtils)
endif()
if(TARGET holdfast_testing)
  holdfast_sbom_add(lua 5.1 MIT Lua.org)
endif()

set(sbom_location NOASSERTION)
if(HOLDFAST_REPOSITORY)
  set(sbom_location git+${HOLDFAST_REPOSITORY}@v${PROJECT_VERSION})
endif()
string(TIMESTAMP sbom_created "%Y-%m-%dT%H:%M:%SZ" UTC)
set(sbom_at @)  # file(CONFIGURE) would take two in a row for a variable
string(SHA256 sbom_hash "${sbom_created}${sbom_location}${sbom_packages}")
file(CONFIGURE OUTPUT ${generated_dir}/holdfast.spdx.json CONTENT [[
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "holdfast-@PROJECT_VERSION@",
  "documentNamespace": "https://spdx.org/spdxdocs/holdfast-@PROJECT_VERSION@-@sbom_hash@",
  "creationInfo": {
    "created": "@sbom_created@",
    "creators": ["Tool: CMake-@CMAKE_VERSION@", "Organization: holdfast maintainers"]
  },
  "packages": [
    {
      "name": "holdfast",
      "SPDXID": "SPDXRef-holdfast",
      "versionInfo": "@PROJECT_VERSION@",
      "primaryPackagePurpose": "LIBRARY",
      "supplier": "Organization: holdfast maintainers",
      "downloadLocation": "@sbom_location@",
      "filesAnalyzed": false,
      "licenseConcluded": "BSL-1.0",
      "licenseDeclared": "BSL-1.0",
      "copyrightText": "NOASSERTION",
      "externalRefs": [{
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": "pkg:generic/holdfast@sbom_at@@PROJECT_VERSION@"
      }]
    }@sbom_packages@
  ],
  "relationships": [
    {
      "spdxElementId": "SPDXRef-DOCUMENT",
      "relationshipType": "DESCRIBES",
      "relatedSpdxElement": "SPDXRef-holdfast"
    }@sbom_relationships@
  ]
}
]] @ONLY)
install(FILES ${generated_dir}/holdfast.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})
